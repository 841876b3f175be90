import { shorten } from "../../internal/json.ts";
import { WINDOW_TURNS } from "../options.ts";
import type { Parts, Piece, Scene } from "../scene.ts";
import { shortenMiddle } from "../shorten.ts";
import { block, escapeTags } from "../text.ts";
import type { Turn } from "../transcript.ts";
import { conversation } from "./history.ts";

const MOST_LINES = 40;
const LINE = 120;

/** The latest messages whole, and what was before them in short. */
export function summaryPolicy(scene: Scene): Parts {
  const cut = summaryCut(scene.turns, scene.options.keepMessages);
  if (cut === 0) return conversation(scene, 0);
  const whole = scene.summary === null ? extract(scene.turns.slice(0, cut)).join("\n") : escapeTags(scene.summary);
  const text = shortenMiddle(whole, 2 * scene.maxResultTokens);
  const summary: Piece = { role: "user", section: "summary", text: block("summary", [text]), isMarked: true };
  return conversation(scene, cut, [summary]);
}

/**
 * How many turns the summary stands for. It moves on by whole windows only, so that the prompt keeps
 * its beginning in between, and never between a decision and its results. Pure.
 */
export function summaryCut(turns: readonly Turn[], keep: number = WINDOW_TURNS): number {
  let cut = Math.floor(Math.max(0, turns.length - keep) / keep) * keep;
  while (cut > 0 && turns[cut]?.observation?.kind === "results") cut--;
  return cut;
}

/** A line for each turn, the latest of them; made by code from the turns' own words. Pure. */
export function extract(turns: readonly Turn[]): readonly string[] {
  const lines = turns.slice(-MOST_LINES).map(lineOf);
  const left = turns.length - lines.length;
  return left > 0 ? [`(${left} earlier messages left out)`, ...lines] : lines;
}

function lineOf({ role, text, observation, decision }: Turn): string {
  const line = (what: string) => shorten(escapeTags(what).replaceAll(/\s+/g, " "), LINE);
  if (observation?.kind === "results") {
    return observation.results
      .map(({ id, tool, status, value, error }) => line(`${id} ${tool} ${status}: ${error ?? JSON.stringify(value)}`))
      .join("; ");
  }
  if (observation?.kind === "answer") return `asked: ${line(observation.question)} answered: ${line(observation.text)}`;
  if (decision) return `decided: ${line(text)}`;
  return `${role}: ${line(text)}`;
}
