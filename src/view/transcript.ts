/** One turn of the whole conversation, as an agent that keeps its history would have it. */
export interface Turn {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** What the transcript needs of an event of the log. */
export interface TranscriptEvent {
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * The conversation so far, rebuilt from the event log: opening message, answers, and every decision
 * as the model wrote it. Pure.
 */
export function transcript(events: readonly TranscriptEvent[]): readonly Turn[] {
  return events.flatMap((event): Turn[] => {
    if (event.kind === "started") return said(messageOf(event.data));
    if (event.kind === "result") {
      const observation = event.data.observation as { text?: unknown; results?: unknown } | null;
      return said(observation?.results ? JSON.stringify(observation.results) : observation?.text);
    }
    if (event.kind === "decision") return [{ role: "assistant", text: JSON.stringify(event.data.decision) }];
    return [];
  });
}

/** The opening message; the first format had it beside the other data of its event. */
function messageOf(data: Readonly<Record<string, unknown>>): unknown {
  return (data.input as { message?: unknown } | undefined)?.message ?? data.message;
}

function said(text: unknown): Turn[] {
  return typeof text === "string" ? [{ role: "user", text }] : [];
}
