import { WorkflowError } from "../errors.ts";
import { MAX_ROLE_CHARACTERS, ROLE_PARTS, type Role } from "../workflow/role.ts";

/** One thing wrong with a role document: in which line, what kind, and what to do. */
export interface RoleFault {
  readonly line: number;
  readonly code:
    | "EMPTY"
    | "TOO_LARGE"
    | "NOT_TEXT"
    | "MISSING_IDENTITY"
    | "EMPTY_SECTION"
    | "UNKNOWN_SECTION"
    | "DUPLICATE_SECTION"
    | "TEXT_OUTSIDE";
  readonly message: string;
}

type Part = (typeof ROLE_PARTS)[number];

/** What the sections may be called, in small letters. */
const NAMES: Readonly<Record<Part, readonly string[]>> = {
  identity: [
    "identity",
    "identity and boundary",
    "identity and its boundary",
    "identity boundary",
    "身份",
    "身份与边界",
  ],
  advice: ["working advice", "advice", "工作建议"],
  style: ["output style", "style", "输出风格"],
  safety: ["safety", "安全"],
};

const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** A section of a document. */
interface Section {
  readonly part: Part;
  /** That of its heading. */
  readonly line: number;
  readonly level: number;
  readonly text: string[];
}

/**
 * Reads a role document: Markdown with the sections `Identity` (needed), `Working advice`, `Output style` and
 * `Safety`, at any heading level, in any order and case, with a title above them or without. Deeper headings are
 * text of their section. Byte order marks and Windows line ends are read. Pure.
 *
 * @param name what the document is called in errors: its file, as a rule.
 * @throws INVALID_ROLE with `details.faults`: a list of `{line, code, message}`, all at once.
 * @example
 * const role = parseRole("# Identity\nYou answer questions about logs.\n# Safety\nNever run anything.", "role");
 */
export function parseRole(text: string, name: string): Role {
  if (text.length > MAX_ROLE_CHARACTERS) {
    const message = `it has ${text.length} characters, at most ${MAX_ROLE_CHARACTERS} are read: every prompt pays for them`;
    throw invalidRole(name, [{ line: 1, code: "TOO_LARGE", message }]);
  }
  if (text.replace(/^\uFEFF/, "").trim() === "") {
    throw invalidRole(name, [
      { line: 1, code: "EMPTY", message: "there is nothing in it; it needs a section Identity" },
    ]);
  }
  const { sections, faults } = sectionsOf(text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/));
  const found = [...faults, ...sectionFaults(sections)].toSorted((a, b) => a.line - b.line);
  if (found.length > 0) throw invalidRole(name, found);
  const textOf = (part: Part) =>
    sections
      .find((section) => section.part === part)
      ?.text.join("\n")
      .trim();
  const parts = ROLE_PARTS.flatMap((part) => {
    const shown = textOf(part);
    return shown === undefined ? [] : [[part, shown]];
  });
  return Object.freeze(Object.fromEntries(parts) as unknown as Role);
}

/** The error about a role document. */
export function invalidRole(name: string, faults: readonly RoleFault[]): WorkflowError {
  const lines = faults.map(({ line, code, message }) => `  ${name}:${line}: ${message} (${code})`);
  const count = faults.length === 1 ? "1 fault" : `${faults.length} faults`;
  return new WorkflowError("INVALID_ROLE", `the role ${name} has ${count}:\n${lines.join("\n")}`, {
    details: { role: name, faults },
  });
}

function sectionsOf(lines: readonly string[]): { sections: readonly Section[]; faults: readonly RoleFault[] } {
  const sections: Section[] = [];
  const faults: RoleFault[] = [];
  let fence: string | null = null;
  let hasTitle = false;
  let isSkipped = false;
  for (const [index, content] of lines.entries()) {
    const line = index + 1;
    const current = sections.at(-1);
    const [, mark] = FENCE.exec(content) ?? [];
    const [, signs, title = ""] = (fence === null && HEADING.exec(content)) || [];
    // Within a block of code a # begins no heading.
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && mark?.startsWith(fence) && content.trim() === mark) fence = null;
    const part = signs === undefined ? undefined : partNamed(title);
    if (signs !== undefined && part !== undefined) {
      sections.push({ part, line, level: signs.length, text: [] });
      isSkipped = false;
    } else if (signs !== undefined && current === undefined && !hasTitle) {
      hasTitle = true;
    } else if (signs !== undefined && signs.length <= (current?.level ?? signs.length)) {
      const message = `there is no section "${title}"; there are Identity, Working advice, Output style and Safety, and what belongs to one of them needs a deeper heading`;
      faults.push({ line, code: "UNKNOWN_SECTION", message });
      isSkipped = true;
    } else if (isSkipped) {
      continue;
    } else if (current !== undefined) {
      current.text.push(content);
    } else if (content.trim() !== "") {
      faults.push({ line, code: "TEXT_OUTSIDE", message: "no prompt shows what stands before the first section" });
      isSkipped = true;
    }
  }
  return { sections, faults };
}

function partNamed(title: string): Part | undefined {
  const plain = title
    .replace(/[*_:：]+/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .toLowerCase();
  return ROLE_PARTS.find((part) => NAMES[part].includes(plain));
}

function sectionFaults(sections: readonly Section[]): readonly RoleFault[] {
  const faults = sections.flatMap(({ part, line, text }): readonly RoleFault[] => {
    const first = sections.find((section) => section.part === part);
    if (first && first.line !== line) {
      return [{ line, code: "DUPLICATE_SECTION", message: `${part} has a section already, in line ${first.line}` }];
    }
    return text.join("").trim() === ""
      ? [{ line, code: "EMPTY_SECTION", message: `the section ${part} is empty; fill it or leave it out` }]
      : [];
  });
  const hasIdentity = sections.some(({ part }) => part === "identity");
  const message = "there is no section Identity: it says who the model is and what is not its business";
  return hasIdentity ? faults : [{ line: 1, code: "MISSING_IDENTITY", message }, ...faults];
}
