import { digest } from "../internal/digest.ts";
import { jsonEqual } from "../internal/json.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { NeededConsent, PendingConsent } from "../workflow/consent.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import type { Answer, Request } from "./requests.ts";

/** Under this name a consent is shown where approvals name a tool. */
const SENDING = "send_to_model";

/** What a request for consent asks about. */
export interface AskedConsent {
  readonly workflow: string;
  readonly destination: string;
  readonly kinds: readonly string[];
}

/**
 * What a person is asked before data goes to a model: an approval of sending, so that whatever shows and answers
 * approvals does it here too. To approve allows all kinds, to reject withholds them, to edit `kinds` allows those that
 * are left. Pure.
 *
 * @param asked the task's revision when it was asked, and how often it had been forked: asked again, after a consent
 *   was withdrawn or on a branch, it is another request.
 * @param expiresAt milliseconds since the epoch; it takes an answer for ever unless given.
 */
export function consentRequest(
  workflow: AnyWorkflow,
  pending: PendingConsent,
  asked: { readonly revision: number; readonly forks: number },
  expiresAt?: number,
): Request {
  const { destination, model, kinds } = pending;
  const args = { model, destination, workflow: workflow.name, kinds };
  return {
    id: `c${asked.revision}.${asked.forks}`,
    kind: "approval",
    question: consentQuestion(workflow, pending),
    digest: digest([SENDING, args]),
    tool: SENDING,
    args,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

/** What a request asks consent for; null where it is about something else. Passed on by a parent, it is one too. Pure. */
export function askedConsent({ id, tool, args }: Pick<Request, "id" | "tool" | "args">): AskedConsent | null {
  if (tool !== SENDING || !/^(?:w[\d.]+\/)*c\d+\.\d+$/.test(id)) return null;
  const { workflow, destination, kinds } = args ?? {};
  return typeof workflow === "string" && typeof destination === "string" && Array.isArray(kinds)
    ? { workflow, destination, kinds: kinds.map(String) }
    : null;
}

/** Requests without those that ask for the same consent as one before: an answer to that one answers them. Pure. */
export function distinctRequests<Asked extends Pick<Request, "id" | "tool" | "args">>(
  requests: readonly Asked[],
): readonly Asked[] {
  const seen = new Set<string>();
  return requests.filter((request) => {
    const asked = askedConsent(request);
    if (!asked) return true;
    const key = digest([asked.workflow, asked.destination, asked.kinds]);
    const isFirst = !seen.has(key);
    seen.add(key);
    return isFirst;
  });
}

/** What is asked, with how far an answer reaches and where the data is. Pure. */
export function consentQuestion(
  workflow: AnyWorkflow,
  { model, kinds }: Pick<NeededConsent, "model" | "kinds">,
): string {
  const sources = sensitiveSources(workflow);
  const listed = kinds.map((kind) => `${kind} (${sourcesText(sources.get(kind) ?? ["no longer declared"])})`);
  return `May this go to ${model}, for all tasks of ${workflow.name}: ${listed.join("; ")}?`;
}

/** The places where data is, with fields and tools named together. */
function sourcesText(sources: readonly string[]): string {
  const named = (start: string) =>
    sources.flatMap((text) => (text.startsWith(start) ? [text.slice(start.length)] : []));
  const fields = named("field ");
  const tools = named("results of ");
  return [
    ...(fields.length > 0 ? [`${fields.length > 1 ? "fields" : "field"} ${fields.join(", ")}`] : []),
    ...(tools.length > 0 ? [`results of ${tools.join(", ")}`] : []),
    ...sources.filter((text) => !/^(?:field|results of) /.test(text)),
  ].join("; ");
}

/** Which of the kinds that were asked about an answer allows; null where it is none to that question. Pure. */
export function allowedKinds(
  asked: Pick<Request, "args">,
  kinds: readonly string[],
  answer: Answer,
): readonly string[] | null {
  switch (answer.type) {
    case "approve":
      return kinds;
    case "reject":
      return [];
    case "edit": {
      const left: unknown = answer.args.kinds;
      if (consentEditFault(asked, answer.args) !== null || !Array.isArray(left)) return null;
      return kinds.filter((kind) => left.includes(kind));
    }
    case "text":
      return null;
  }
}

/** What is wrong with an edit of a consent, which may leave out kinds and change nothing else; null where nothing is. Pure. */
export function consentEditFault(
  { args: asked = {} }: Pick<Request, "args">,
  args: Readonly<Record<string, unknown>>,
): string | null {
  const { kinds: left, ...others } = args;
  const kinds = Array.isArray(asked.kinds) ? asked.kinds : [];
  if (!Array.isArray(left) || !left.every((kind) => kinds.includes(kind)))
    return `kinds is a list of what is allowed, of: ${kinds.map((kind) => JSON.stringify(kind)).join(", ")}`;
  const [changed] = Object.entries(others).find(([name, value]) => !jsonEqual(value, asked[name])) ?? [];
  return changed === undefined
    ? null
    : `only kinds can be changed, and it has another ${changed}; reject it, or leave ${changed} as it is`;
}
