import { z } from "zod";
import { field, type Field } from "./fields.ts";

export const TODO_STATUSES = ["pending", "in_progress", "completed", "cancelled"] as const;

/** A word rather than a text, so that it can stand in a status bar as it is. */
export const todoId = z.string().regex(/^[\w-]{1,32}$/, "letters, digits, _ and - only, at most 32");

const todoSchema = z.object({
  id: todoId,
  text: z.string().min(1).max(200),
  status: z.enum(TODO_STATUSES),
  /** When it was added or last changed, in milliseconds since 1970. */
  at: z.number(),
});
/** One item of a todo list. */
export type Todo = z.infer<typeof todoSchema>;

/** The most items of a list; more is a project, and no model keeps track of it. */
export const MAX_TODOS = 50;

// One schema for all fields: that is what they are recognised by, whatever their rules.
const todoListSchema = z.array(todoSchema).max(MAX_TODOS);

/**
 * A state field that holds a todo list. `todoTools` lets a model write it; the status bar shows what is
 * open in it.
 *
 * @example
 * state: { todos: todoField() }, tools: { ...todoTools("todos") }
 */
export function todoField(): Field<Todo[]> {
  return field(todoListSchema);
}

/** True for a field made with `todoField()`. */
export function isTodoField(declared: Field<unknown>): boolean {
  return declared.schema === todoListSchema;
}

/** The items of a todo field's value; none where there is no valid list. */
export function todosIn(value: unknown): readonly Todo[] {
  const parsed = todoListSchema.safeParse(value ?? []);
  return parsed.success ? parsed.data : [];
}
