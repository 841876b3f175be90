import { posix } from "node:path";
import { OfflineRules, type Prompt } from "../offline-rules.ts";
import { isWorkable } from "./folders.ts";
import { editBetween, movable, newModule, oldModule, otherModule, whyNot, type Move } from "./move.ts";
import {
  errorIn,
  failedIn,
  fileIn,
  foundIn,
  isCut,
  pathsIn,
  shownIn,
  wishIn,
  type File,
  type Found,
} from "./reading.ts";

const WHAT = "Which function shall I move? Say it like: move formatPrice from src/cart.js to src/money.js";
const MAX_ASKED = 3;
const YES = /^\W*(?:yes|yeah|ok|okay|sure|go|please|do)\b/i;
const RESERVATION = /\b(?:no|not|never|but|wait)\b|n[’']t\b/i;

/** One decision of an agent that can move a function, from the prompt alone. */
export function decideRefactor(prompt: Prompt): object {
  switch (prompt.step) {
    case "scoping":
      return scope(prompt);
    case "confirming":
      return confirm(prompt);
    case "working":
      return work(prompt);
    default:
      return mend(prompt);
  }
}

function scope(prompt: Prompt): object {
  const { state, said } = prompt;
  const results = shownIn(prompt);
  const source = String(state.source);
  if (results.some(({ status }) => status !== "ok"))
    return again(prompt, `That did not work: ${results[0]?.text.split("\n")[0]}.`);
  const [file] = readIn(prompt);
  if (file?.path === source) return sign(prompt, file.content);
  if (results.length > 0) return plan(prompt, results);
  const isWished = state.functionName !== undefined || /\bmove\b/i.test(said);
  const wish = wishIn(isWished ? said : String(state.goal));
  if (!wish.functionName || !wish.source || !wish.target) return again(prompt, "");
  const { functionName, target } = wish;
  const bad = [wish.source, target].find((path) => !isWorkable(path));
  if (bad) return again(prompt, `${bad} is outside of the project, hidden, installed or built, and not for me.`);
  return {
    because: "who uses the function has to be found out",
    patch: {
      functionName,
      source: wish.source,
      target,
      goal: `Move ${functionName} from ${wish.source} to ${target}.`,
    },
    calls: [
      { tool: "listFiles", args: {} },
      { tool: "searchFiles", args: { text: functionName } },
      { tool: "searchFiles", args: { text: stem(wish.source) } },
    ],
  };
}

function again({ recent }: Prompt, why: string): object {
  const asked = recent.filter((line) => line.includes("asked: ")).length;
  // The step's own limit ends it, if nobody says anything that helps.
  return {
    because: asked < MAX_ASKED ? "function, source and target have to be known" : "asked often",
    ask: `${why} ${WHAT}`.trim(),
  };
}

/** A plan from what the searches have shown. */
function plan(prompt: Prompt, results: ReturnType<typeof shownIn>): object {
  const { functionName, source, target } = moveIn(prompt);
  // A plan from half of the places would be half a plan.
  if (results.some(isCut)) return again(prompt, "There is more of it than I can look through.");
  const [files, uses, links] = results;
  const paths = files ? pathsIn(files) : [];
  if (!paths.includes(source)) return again(prompt, `There is no file ${source}.`);
  if (paths.includes(target)) return again(prompt, `${target} exists already, and I only make new modules.`);
  const linked = links ? foundIn(links) : [];
  const named = new Set((uses ? foundIn(uses) : []).map(({ path }) => path));
  const importers = [...new Set(linked.map(({ path }) => path))].filter(
    (path) => named.has(path) && path !== source && isCode(path),
  );
  const reexport = linked.some(
    (line) => line.path !== source && isCode(line.path) && takesEverything(line, source, paths),
  );
  const change = importers.map((path) => ({
    path,
    action: "change",
    status: "pending",
    decision: "it uses the function and names its module",
  }));
  return {
    because: `${importers.length} other files name the function and its module`,
    patch: {
      reexport,
      plan: [
        {
          path: target,
          action: "create",
          status: "pending",
          decision: "the new home of the function, with the imports that it needs",
        },
        {
          path: source,
          action: "change",
          status: "pending",
          decision: reexport
            ? "the function leaves it and stays exported, since somebody imports everything"
            : "the function leaves it",
        },
        ...change,
      ],
      goal: `Move ${functionName} from ${source} to ${target}, and mend ${importers.join(", ") || "no other file"}.`,
    },
    calls: [{ tool: "readFile", args: { path: source } }],
  };
}

/** Whether a line may take the function from its old module in a way that its name does not tell. */
function takesEverything({ path, text }: Found, source: string, paths: readonly string[]): boolean {
  if (/\*\s*(?:as\s+[\w$]+\s*)?(?:from\b|$)|\bimport\s*\(|\brequire\b/.test(text)) return true;
  const named = [...text.matchAll(/(["'`])([^"'`\s]*)\1/g)].map(([, , name = ""]) => name);
  return named.some((name) => {
    const isPath = /^[.#@\w][^:]*\//.test(name) && stem(name) === stem(source);
    if (!isPath) return false;
    const meant = name.startsWith(".") ? posix.join(posix.dirname(path), name) : name;
    // Without a plain `from`, or by a name that only a bundler or a package's table understands.
    return meant === source ? !/[}\w$]\s*\bfrom\s*["'`]/.test(text) : !paths.includes(meant);
  });
}

function sign(prompt: Prompt, content: string): object {
  const { functionName, source } = moveIn(prompt);
  const found = movable(content, functionName);
  const why = whyNot(content, functionName);
  if (!found) return again(prompt, `I cannot move ${functionName} out of ${source}: ${why}.`);
  return { because: "the function was found", patch: { signature: found.signature }, next: "confirming" };
}

function confirm({ state, question, said }: Prompt): object {
  const constraints = [
    `keep the signature: ${String(state.signature)}`.slice(0, 300),
    "change nothing outside the plan without a person's approval",
    "the tests pass in the end",
  ];
  if (question === "") {
    return {
      because: "a person has to agree",
      ask: `${String(state.goal)} Constraints: ${constraints.join("; ")}. Shall I?`,
    };
  }
  if (YES.test(said) && !RESERVATION.test(said)) {
    return { because: "a person has confirmed it", patch: { constraints }, next: "starting" };
  }
  return { because: "nobody has agreed", patch: { report: "Not confirmed; nothing was changed." }, next: "stopped" };
}

function work(prompt: Prompt): object {
  const { state } = prompt;
  const focus = String(state.focus);
  const move = moveIn(prompt);
  if (focus === "tests") return { because: "every step of the plan is settled", next: "testing" };
  const read = focus === move.target ? move.source : focus;
  const [file] = readIn(prompt);
  const [shown] = shownIn(prompt);
  const giveUp = (decision: string) => ({
    because: decision,
    calls: [{ tool: "noteStep", args: { path: focus, status: "failed", decision } }],
  });
  // What somebody else has changed is read again; anything else would fail again.
  if (shown && shown.status !== "ok" && !shown.text.startsWith("files changed outside"))
    return giveUp(`${shown.tool}: ${shown.text.split("\n")[0]}`.slice(0, 300));
  if (shown?.tool === "readFile" && !file) return giveUp(`${read} is longer than these rules can read`);
  if (file?.path !== read) return { because: `${focus} is next`, calls: [{ tool: "readFile", args: { path: read } }] };
  const { content } = file;
  const after =
    focus === move.target
      ? newModule(content, move)
      : focus === move.source
        ? oldModule(content, move)
        : otherModule(content, focus, move);
  if (focus === move.target && after !== null) {
    return {
      because: "the function gets its new module",
      calls: [{ tool: "writeFile", args: { path: focus, text: after } }],
    };
  }
  if (after !== null && after !== content) {
    return {
      because: "what it says about the function is mended",
      calls: [{ tool: "editFile", args: { path: focus, edits: [editBetween(content, after)] } }],
    };
  }
  if (focus === move.target || focus === move.source)
    return giveUp(`${move.functionName} is not in ${move.source} any more, or cannot be moved`);
  const decision = `it does not import the function from ${move.source}; left as it is`;
  return { because: decision, calls: [{ tool: "noteStep", args: { path: focus, status: "done", decision } }] };
}

function mend(prompt: Prompt): object {
  const { said, question } = prompt;
  if (shownIn(prompt).some(({ tool }) => tool === "readFile")) return afterDrift(prompt);
  const message = errorIn(prompt);
  const [, repeated, list] = /^files changed outside( again)?: (.*)$/.exec(message) ?? [];
  const drifted = (list ?? "").split(", ").filter((path) => isWorkable(path) && !path.startsWith("and "));
  const readAgain = {
    because: "somebody else has changed files; what they say now counts",
    calls: drifted.map((path) => ({ tool: "readFile", args: { path } })),
  };
  if (question === "") {
    // Files that change each time the tests run would never come to an end.
    if (drifted.length > 0 && !repeated) return readAgain;
    return {
      because: "rules cannot mend this",
      ask: `${message}\nMend it and say "again", or say "stop".`,
    };
  }
  if (/^\W*(?:again|retry|yes|ok|done)\b/i.test(said)) {
    if (drifted.length > 0) return readAgain;
    const decision = "a person has seen to it";
    const calls = failedIn(prompt).map((path) => ({ tool: "noteStep", args: { path, status: "done", decision } }));
    return { because: "a person has looked at it", ...(calls.length > 0 ? { calls } : {}), next: "testing" };
  }
  const report = `Stopped with the changes made and something open: ${message}`;
  return { because: "a person wants to stop", patch: { report }, next: "stopped" };
}

/** What somebody else has written stays; where it takes the function from its old module, that is mended. */
function afterDrift(prompt: Prompt): object {
  const move = moveIn(prompt);
  const calls = readIn(prompt).flatMap(({ path, content }) => {
    const after = path === move.source || path === move.target ? null : otherModule(content, path, move);
    return after === null ? [] : [{ tool: "editFile", args: { path, edits: [editBetween(content, after)] } }];
  });
  return { because: "the changed files were read", ...(calls.length > 0 ? { calls } : {}), next: "testing" };
}

/** The whole files that were read last. */
function readIn(prompt: Prompt): readonly File[] {
  return shownIn(prompt).flatMap((result) =>
    result.tool === "readFile" && result.status === "ok" ? (fileIn(result) ?? []) : [],
  );
}

function moveIn({
  state,
}: Prompt): Move & { readonly functionName: string; readonly source: string; readonly target: string } {
  const [functionName, source, target] = [String(state.functionName), String(state.source), String(state.target)];
  return {
    functionName,
    source,
    target,
    name: functionName,
    from: source,
    to: target,
    reexport: state.reexport === true,
  };
}

function isCode(path: string): boolean {
  return /\.[cm]?[jt]sx?$/.test(path);
}

/** How other modules name it: without its folder and ending. */
function stem(path: string): string {
  return path.replace(/^.*\//, "").replace(/\.\w+$/, "");
}

/** The refactoring example's own model, for when no key is set. */
export function refactorRules(): OfflineRules {
  return new OfflineRules(decideRefactor);
}
