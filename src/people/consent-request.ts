import { digest } from "../internal/digest.ts";
import type { AnyWorkflow } from "../workflow/define.ts";
import type { NeededConsent, PendingConsent } from "../workflow/consent.ts";
import { sensitiveSources } from "../workflow/sensitive.ts";
import type { Answer, Request } from "./requests.ts";

/** Under this name a consent is shown where approvals name a tool. */
const SENDING = "send_to_model";

/**
 * What a person is asked before data goes to a model: an approval of sending, so that whatever shows and answers
 * approvals does it here too. To approve allows all kinds, to reject withholds them, to edit `kinds` allows those that
 * are left. Pure.
 *
 * @param asked the task's revision when it was asked, and how often it had been forked: asked again, after a consent
 *   was withdrawn or on a branch, it is another request.
 */
export function consentRequest(
  workflow: AnyWorkflow,
  pending: PendingConsent,
  asked: { readonly revision: number; readonly forks: number },
): Request {
  const { destination, model, kinds } = pending;
  const args = { model, destination, kinds };
  return {
    id: `c${asked.revision}.${asked.forks}`,
    kind: "approval",
    question: consentQuestion(workflow, pending),
    digest: digest([SENDING, args]),
    tool: SENDING,
    args,
  };
}

/** Whether a request is about sending data to a model. Pure. */
export function isConsent({ id, tool }: Pick<Request, "id" | "tool">): boolean {
  return tool === SENDING && /^c\d+\.\d+$/.test(id);
}

/** What is asked, with where the data is. Pure. */
export function consentQuestion(
  workflow: AnyWorkflow,
  { model, kinds }: Pick<NeededConsent, "model" | "kinds">,
): string {
  const sources = sensitiveSources(workflow);
  const listed = kinds.map((kind) => `${kind} (${sources.get(kind)?.join(", ") ?? "no longer declared"})`);
  return `May this go to ${model}: ${listed.join("; ")}?`;
}

/** Which of the kinds that were asked about an answer allows. Pure. */
export function allowedKinds(kinds: readonly string[], answer: Answer): readonly string[] {
  if (answer.type === "approve") return kinds;
  const left: unknown = answer.type === "edit" ? answer.args.kinds : [];
  return Array.isArray(left) ? kinds.filter((kind) => left.includes(kind)) : [];
}

/** What is wrong with an edit of a consent; null where nothing is. Pure. */
export function consentEditFault(kinds: readonly string[], args: Readonly<Record<string, unknown>>): string | null {
  const { kinds: left } = args;
  const isPart = Array.isArray(left) && left.every((kind) => kinds.includes(kind as string));
  return isPart
    ? null
    : `kinds is a list of what is allowed, of: ${kinds.map((kind) => JSON.stringify(kind)).join(", ")}`;
}
