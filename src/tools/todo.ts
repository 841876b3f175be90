import { z } from "zod";
import { jsonBytes } from "../internal/json.ts";
import type { CallResult } from "../state/execution.ts";
import type { State } from "../state/fields.ts";
import { MAX_TODOS, TODO_STATUSES, todoId, todosIn, type Todo } from "../state/todos.ts";
import { defineTool } from "../workflow/tool.ts";
import { ToolError } from "./tool-error.ts";

/** A list is repeated in its result and in the state, so it stays far below what either may hold. */
const MAX_BYTES = 8192;

const writeParameters = z.object({
  todos: z
    .array(
      z.object({
        id: todoId.optional().describe("a short word; 1, 2, … unless given"),
        text: z.string().trim().min(1).max(200),
        status: z.enum(TODO_STATUSES).optional().describe("pending unless given"),
      }),
    )
    .max(MAX_TODOS),
});

const setParameters = z.object({ id: todoId, status: z.enum(TODO_STATUSES) });

/** What `setTodo` gives back. */
const changeSchema = setParameters.extend({ at: z.number() });

/**
 * The two tools with which a model keeps a todo list: `writeTodos` writes the whole list anew, `setTodo` sets the
 * status of one item, which costs far fewer tokens. The list commits with the tool's result.
 *
 * @param fieldName the state field, made with `todoField()`.
 * @example
 * defineWorkflow({ …, state: { todos: todoField() }, tools: { ...todoTools() } })
 */
export function todoTools(fieldName = "todos") {
  return {
    writeTodos: defineTool({
      description:
        "Writes the todo list anew: what has to be done, in order. Items that are left out are gone. To change only a status use setTodo.",
      parameters: writeParameters,
      effect: "none",
      trusted: true,
      conflicts: () => fieldName,
      run: ({ todos }, { state, clock }) => rewritten(todos, todosIn(state[fieldName]), clock.now()),
      onResult: (result) => (result.status === "ok" ? { [fieldName]: todosIn(result.value) } : {}),
    }),
    setTodo: defineTool({
      description: "Sets the status of one item of the todo list, not in the same decision as writeTodos.",
      parameters: setParameters,
      effect: "none",
      trusted: true,
      conflicts: () => fieldName,
      run({ id, status }, { state, clock }) {
        refuseUnknown(id, todosIn(state[fieldName]));
        return { id, status, at: clock.now() };
      },
      onResult: (result, state) => changed(fieldName, result, state),
    }),
  };
}

/** A new list. An item that stays as it was keeps its time. */
function rewritten(
  items: z.output<typeof writeParameters>["todos"],
  before: readonly Todo[],
  now: number,
): readonly Todo[] {
  const taken = new Set(items.flatMap(({ id }) => id ?? []));
  const free = freeIds(taken);
  const todos = items.map(({ id, text, status = "pending" }): Todo => {
    const same = before.find((todo) => (id === undefined || todo.id === id) && todo.text === text);
    return { id: id ?? free(same?.id), text, status, at: same?.status === status ? same.at : now };
  });
  const twice = items.find(({ id }, index) => id !== undefined && items.findIndex((item) => item.id === id) < index);
  if (twice) throw new ToolError(`two items have the id ${twice.id}`, { type: "DUPLICATE_ID" });
  if (jsonBytes(todos) > MAX_BYTES) {
    throw new ToolError(`the list has ${jsonBytes(todos)} bytes, at most ${MAX_BYTES} are allowed`, {
      type: "TOO_LARGE",
      hint: "shorten the texts, or leave out what is done",
    });
  }
  return todos;
}

/** Gives an item the id that it had, or the next number that no other has. */
function freeIds(taken: Set<string>): (wanted: string | undefined) => string {
  let last = 0;
  return (wanted) => {
    let id = wanted;
    while (id === undefined || taken.has(id)) id = String(++last);
    taken.add(id);
    return id;
  };
}

function refuseUnknown(id: string, todos: readonly Todo[]): void {
  if (todos.some((todo) => todo.id === id)) return;
  const known = todos.map((todo) => todo.id).join(", ");
  throw new ToolError(`there is no item "${id}"`, {
    type: "UNKNOWN_ID",
    hint: known === "" ? "the list is empty: write it first with writeTodos" : `the ids are: ${known}`,
  });
}

/** Changes one item of the list as it is when the result commits: other calls may have changed it since. */
function changed(fieldName: string, result: CallResult, state: State): Readonly<Record<string, unknown>> {
  const change = changeSchema.safeParse(result.value);
  if (result.status !== "ok" || !change.success) return {};
  const { id, ...rest } = change.data;
  const todos = todosIn(state[fieldName]);
  return { [fieldName]: todos.map((todo) => (todo.id === id ? { ...todo, ...rest } : todo)) };
}
