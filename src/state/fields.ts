import { z } from "zod";
import { jsonBytes, notJson, shorten } from "../internal/json.ts";

/** The rules of a field beside its schema. */
interface FieldRules {
  readonly description: string;
  readonly writeOnce: boolean;
  readonly appendOnly: boolean;
  readonly clearable: boolean;
  readonly runtimeOnly: boolean;
  readonly maxBytes: number;
  /** What kind of data it holds, where that may not leave the machine without consent. */
  readonly sensitive?: string;
}

const DEFAULT_RULES: FieldRules = {
  description: "",
  writeOnce: false,
  appendOnly: false,
  clearable: false,
  runtimeOnly: false,
  maxBytes: 16_384,
};

/**
 * One typed field of a workflow's state: a zod schema and rules. Immutable; each method returns a
 * new field. A field without a value is `null`.
 */
export class Field<T> {
  /** Only for the type checker. */
  declare readonly valueType: T;
  readonly schema: z.ZodType;
  readonly rules: FieldRules;

  constructor(schema: z.ZodType, rules: FieldRules = DEFAULT_RULES) {
    this.schema = schema;
    this.rules = rules;
  }

  private with(rules: Partial<FieldRules>): this {
    return new Field<T>(this.schema, { ...this.rules, ...rules }) as this;
  }

  /** What the field means, shown to the model and in schemas. */
  describe(description: string): this {
    return this.with({ description });
  }

  /** Once it has a value, the value never changes; writing the same value again does nothing. */
  writeOnce(): this {
    return this.with({ writeOnce: true });
  }

  /** A list that a patch adds items to; nothing in it is ever changed or removed. */
  appendOnly(this: T extends readonly unknown[] ? Field<T> : never): Field<T> {
    return new Field<T>(this.schema, { ...this.rules, appendOnly: true });
  }

  /** `clear: ["field"]` in a decision may set it back to `null`. Without this nothing can. */
  clearable(): this {
    return this.with({ clearable: true });
  }

  /** Written by code steps and inputs; shown to the model, which can never write it. */
  runtimeOnly(): this {
    return this.with({ runtimeOnly: true });
  }

  /** The most bytes that the value may take as JSON in UTF-8; 16,384 unless set. */
  maxBytes(bytes: number): this {
    return this.with({ maxBytes: bytes });
  }

  /**
   * What kind of data it holds, such as "personal data": a person is asked before any of that kind goes to a model
   * that is not on this machine, and what they withhold no prompt for it shows.
   */
  sensitive(kind: string): this {
    return this.with({ sensitive: kind });
  }

  /**
   * Checks a whole value of this field against its schema and size.
   *
   * @returns the value to store, or the rule that it breaks and why.
   */
  check(value: unknown): FieldCheck<T> {
    const parsed = this.schema.safeParse(value);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      const path = issue?.path.length ? `at ${issue.path.join(".")}: ` : "";
      return { ok: false, code: "INVALID_FIELD", reason: shorten(`${path}${issue?.message ?? "invalid"}`) };
    }
    const lost = notJson(parsed.data);
    if (lost) return { ok: false, code: "INVALID_FIELD", reason: `${lost}, which a checkpoint would not give back` };
    const bytes = jsonBytes(parsed.data);
    if (bytes > this.rules.maxBytes) {
      const reason = `${bytes} bytes, at most ${this.rules.maxBytes} are allowed`;
      return { ok: false, code: "FIELD_TOO_LARGE", reason };
    }
    return { ok: true, value: parsed.data as T };
  }
}

/** A field's verdict on a value. */
export type FieldCheck<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: "INVALID_FIELD" | "FIELD_TOO_LARGE"; readonly reason: string };

/**
 * Makes a state field from a zod schema. The schema's values must be JSON: dates, maps, big integers
 * and transforms are reported by `defineWorkflow`, since a checkpoint would not give them back.
 *
 * @example field(z.enum(["P1", "P2", "P3"])).describe("how urgent").writeOnce()
 */
export function field<Schema extends z.ZodType>(schema: Schema): Field<z.output<Schema>> {
  return new Field(schema);
}

/** The fields of a state, by name. */
// The value type is invariant in its methods, so only `any` admits every field; it never leaks,
// since readers go through StateOf.
// oxlint-disable-next-line typescript/no-explicit-any
export type Fields = Readonly<Record<string, Field<any>>>;

/** A field's value type. */
export type ValueOf<F> = F extends { readonly valueType: infer T } ? T : never;

type Scalar = string | number | boolean | null | undefined;

/** A value as it is read: frozen through and through. */
export type Frozen<T> = T extends Scalar
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Frozen<Item>[]
    : { readonly [K in keyof T]: Frozen<T[K]> };

/** A value as it is written: objects are merged, so each part may be absent or `null`, for unchanged. */
export type Patch<T> = T extends Scalar
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Frozen<Item>[]
    : { readonly [K in keyof T]?: Patch<T[K]> | null };

/** The state that steps and guards read: every field with its value, or `null` where it has none. */
export type StateOf<F extends Fields> = { readonly [K in keyof F]: Frozen<ValueOf<F[K]>> | null };

/** What a step may return as changes: some fields; absent and `null` mean unchanged. */
export type PatchOf<F extends Fields> = { readonly [K in keyof F]?: Patch<ValueOf<F[K]>> | null };

/** A state whose field types are not known, as the runtime handles it. */
export type State = Readonly<Record<string, unknown>>;

/** The state of a task before anything is known. */
export function emptyState(fields: Fields): State {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
}

/** Only the declared fields of a bag of values; absent ones become `null`. */
export function pickState(fields: Fields, values: Readonly<Record<string, unknown>>): State {
  return Object.fromEntries(
    Object.keys(fields).map((name) => [name, Object.hasOwn(values, name) ? (values[name] ?? null) : null]),
  );
}

// Channels that are not the workflow's fields.
const OWN_CHANNELS = /^(?:execution|message|__.*|branch:.*)$/;

/** Whether a channel holds one of a workflow's fields, rather than something of the runtime or of LangGraph. */
export function isFieldChannel(name: string): boolean {
  return !OWN_CHANNELS.test(name);
}

/** The workflow's fields among a checkpoint's channels, for whoever has no definition at hand. Pure. */
export function stateIn(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => isFieldChannel(name)));
}
