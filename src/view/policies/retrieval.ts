import { wordIndex } from "../../internal/word-index.ts";
import { wordsOf } from "../../internal/words.ts";
import { observationPieces, statePiece, statusPieces, stepPiece, turnPieces } from "../pieces.ts";
import type { Parts, Scene } from "../scene.ts";
import { isSameObservation, type Turn } from "../transcript.ts";

/** A decision and what came back, or what was said before the first one: they are found and shown together. */
type Exchange = readonly Turn[];

/** The state, the messages that were retrieved, then what came last. */
export function retrievalPolicy(scene: Scene): Parts {
  return {
    head: [statePiece(scene)],
    turns: turnPieces(scene, scene.turns),
    tail: [...observationPieces(scene, scene.turns.at(-1)), stepPiece(scene), ...statusPieces(scene)],
  };
}

/**
 * Of all that was said, the messages most similar, by their words, to the latest observation and the state's fields,
 * and the latest decision, in the order in which they came. It does not depend on how much room a prompt has. Pure.
 */
export function retrieve(scene: Scene): readonly Turn[] {
  const { turns, observation, options } = scene;
  const past = exchangesIn(turns.filter((turn) => !isSameObservation(turn.observation, observation)));
  // What came last makes no sense without the decision that it answers, whatever else is found.
  const latest = past.findLast(([first]) => first?.role === "assistant");
  const earlier = past.filter((exchange) => exchange !== latest);
  const chosen = mostSimilar(earlier, queryOf(scene), options.keepMessages);
  return past.filter((exchange) => exchange === latest || chosen.has(exchange)).flat();
}

function exchangesIn(turns: readonly Turn[]): readonly Exchange[] {
  const exchanges: Turn[][] = [];
  for (const turn of turns) {
    const last = exchanges.at(-1);
    if (last && turn.role === "user") last.push(turn);
    else exchanges.push([turn]);
  }
  return exchanges;
}

/** What is looked for: the words of what came last, and of what is known. */
function queryOf({ snapshot, observation }: Scene): string {
  const known = Object.values(snapshot.state).filter((value) => value !== null && value !== undefined);
  return wordsIn([observation, ...known].map((value) => JSON.stringify(value)));
}

/** In quoted text a line ends with `\n`: its letter belongs to no word. */
const ESCAPES = /\\(?:u[\da-f]{4}|.)/g;

/** The words of each text, since of a long one only so many count. */
function wordsIn(texts: readonly string[]): string {
  return texts.flatMap((text) => wordsOf(text.replaceAll(ESCAPES, " "))).join(" ");
}

/** The best ones that have so many messages together; at least one. */
function mostSimilar(exchanges: readonly Exchange[], query: string, messages: number): ReadonlySet<Exchange> {
  const find = wordIndex(exchanges, {
    weights: { words: 1 },
    partOf: (exchange) => wordsIn(exchange.map(({ text }) => text)),
    wordsOf: (text) => text.split(" "),
  });
  const chosen = new Set<Exchange>();
  let left = messages;
  for (const position of find(query)) {
    const exchange = exchanges[position];
    if (exchange && (chosen.size === 0 || exchange.length <= left)) {
      chosen.add(exchange);
      left -= exchange.length;
    }
    if (left <= 0) break;
  }
  return chosen;
}
