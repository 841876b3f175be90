import type { Request, RequestPlace, RequestRow, Vote } from "../people/requests.ts";
import { countVote } from "../people/votes.ts";

/** The requests of one task, kept in this process. */
export class InProcessRequests {
  private readonly rows = new Map<string, RequestRow>();

  get(id: string): RequestRow | null {
    return this.rows.get(id) ?? null;
  }

  at({ decision, forks, prefix }: RequestPlace): readonly RequestRow[] {
    return [...this.rows.values()].filter(
      (row) => row.decision === decision && row.forks === forks && row.request.id.startsWith(prefix),
    );
  }

  add({ decision, forks }: Pick<RequestRow, "decision" | "forks">, requests: readonly Request[]): void {
    for (const request of requests) {
      if (this.rows.has(request.id)) continue;
      this.rows.set(request.id, { request, decision, forks, answer: null, answeredBy: null, approvedBy: [] });
    }
  }

  replace(place: RequestPlace, requests: readonly Request[]): void {
    const asked = new Set(requests.map(({ id }) => id));
    for (const { answer, request } of this.at(place))
      if (answer === null && !asked.has(request.id)) this.rows.delete(request.id);
    this.add(place, requests);
  }

  /** @throws what `countVote` refuses. */
  vote(taskId: string, id: string, vote: Vote, now: number): void {
    const row = this.get(id);
    const counted = countVote(taskId, id, row, vote, now);
    if (!row) return;
    const changed =
      "final" in counted
        ? { answer: counted.final, answeredBy: vote.who }
        : { approvedBy: [...row.approvedBy, counted.approvedBy] };
    this.rows.set(id, { ...row, ...changed });
  }

  hasAnswers(): boolean {
    return [...this.rows.values()].some((row) => row.answer !== null);
  }
}
