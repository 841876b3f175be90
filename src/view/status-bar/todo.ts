import { isTodoField, todosIn, type Todo } from "../../state/todos.ts";
import type { StatusBarInput } from "./input.ts";
import { quote } from "./quote.ts";

const MAX_SHOWN = 12;
const MAX_TEXT = 80;

/** The todo lists of a task: what is open a line each, what is done as a number. */
export function todoReadings({ workflow, snapshot }: StatusBarInput): readonly string[] {
  return Object.entries(workflow.state).flatMap(([name, declared]) =>
    isTodoField(declared) ? listReadings(name, todosIn(snapshot.state[name])) : [],
  );
}

function listReadings(name: string, todos: readonly Todo[]): readonly string[] {
  if (todos.length === 0) return [];
  const cancelled = todos.filter(({ status }) => status === "cancelled").length;
  const done = todos.filter(({ status }) => status === "completed").length;
  const open = todos.filter(({ status }) => status === "pending" || status === "in_progress");
  const counted = `${name}: ${done} of ${todos.length - cancelled} done${cancelled > 0 ? `, ${cancelled} cancelled` : ""}`;
  if (open.length === 0) return [`${counted}: nothing is open, conclude`];
  const left = open.length - MAX_SHOWN;
  return [
    `${counted}; set the status of an item when it changes:`,
    ...open.slice(0, MAX_SHOWN).map(openItem),
    ...(left > 0 ? [`and ${left} more that are open`] : []),
  ];
}

function openItem({ id, text, status }: Todo): string {
  return `[${status === "in_progress" ? ">" : " "}] ${id}: ${quote(text, MAX_TEXT)}`;
}
