import type { Parts, Piece, Scene } from "./scene.ts";
import { block } from "./text.ts";
import { volatileFrom } from "./walk.ts";

/**
 * Puts the memory block behind the state, or before what is current where the state stands further up: within the
 * part of a prompt that no cache keeps, so that a new memory makes nothing of it stale. Where there is no room,
 * memories go before field values are cut. Pure.
 */
export function withMemory(parts: Parts, { memory, maxValueTokens }: Scene): Parts {
  if (memory.length === 0 || maxValueTokens < Infinity) return parts;
  const piece: Piece = { role: "user", section: "memory", text: block("memory", memory) };
  const { tail } = parts;
  const state = tail.findLastIndex(({ section }) => section === "state");
  const at = state >= 0 ? state + 1 : volatileFrom(tail);
  return { ...parts, tail: [...tail.slice(0, at), piece, ...tail.slice(at)] };
}
