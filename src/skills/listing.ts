import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import { shorten } from "../internal/json.ts";
import { ToolError } from "../tools/tool-error.ts";
import { chooseSkills, FEW_SKILLS } from "./choose.ts";
import { skillNamed, type Skill, type SkillSource } from "./skill.ts";
import { catalogue, LINE_CHARACTERS, usageOf } from "./stages.ts";

/** What is asked of a list of skills. */
export interface ListingRequest {
  /** What somebody wants to do. */
  readonly request?: string | undefined;
  /** The group to open. */
  readonly group?: string | undefined;
}

type Groups = ReadonlyMap<string, readonly Skill[]>;

/**
 * A list of skills for a model. A few are listed all. Of many, the best for a request, or without one the groups
 * that they are in; a group is opened like a list of its own.
 *
 * @param source all skills: an index of their words is kept as long as they are the same.
 * @param open those that may be used now.
 * @throws a ToolError where there is no such group.
 */
export async function listing(
  source: SkillSource,
  open: readonly Skill[],
  { request, group }: ListingRequest,
  embeddings: EmbeddingsInterface | undefined,
): Promise<string> {
  const groups = groupsOf(open);
  const listed = group === undefined ? open : membersOf(groups, group);
  if (listed.length <= FEW_SKILLS) return catalogue(listed) || "there are no skills here";
  if (request) {
    const allowed = listed.map(({ name }) => name);
    const chosen = await chooseSkills(source, request, { allowed, ...(embeddings ? { embeddings } : {}) });
    return chosen.length > 0
      ? catalogue(chosen)
      : `none of ${listed.length} skills fits by its words: ${named(listed)}`;
  }
  if (group === undefined && groups.size > 0) return entries(listed, groups);
  return `${listed.length} skills; say in request what you want to do. Their names: ${named(listed)}`;
}

/** A line for each group, and what is in none; a group's own skill, of the same name, speaks for it. */
function entries(skills: readonly Skill[], groups: Groups): string {
  const lines = [...groups].map(([group, members]) => {
    const entry = skillNamed(skills, group);
    return `- ${group} (group of ${members.length}): ${shorten(entry ? usageOf(entry) : named(members), LINE_CHARACTERS)}`;
  });
  const alone = skills.filter(({ name, group }) => group === null && !groups.has(name));
  const rest =
    lines.length + alone.length <= FEW_SKILLS ? catalogue(alone) : `in no group: ${shorten(named(alone), 4000)}`;
  const head = `${skills.length} skills; say in group which to open, or in request what you want to do.`;
  return [head, ...lines, ...(alone.length > 0 ? [rest] : [])].join("\n");
}

/** The skills of each group, and with them the one that speaks for it. */
function groupsOf(skills: readonly Skill[]): Groups {
  const names = new Set(skills.flatMap(({ group }) => group ?? []));
  return new Map([...names].map((group) => [group, skills.filter((one) => one.group === group || one.name === group)]));
}

function membersOf(groups: Groups, group: string): readonly Skill[] {
  const members = groups.get(group);
  if (members) return members;
  const known = [...groups.keys()].join(", ");
  throw new ToolError(`there is no group "${group}" here`, {
    type: "UNKNOWN_GROUP",
    hint: known === "" ? "there are none; leave group out" : `there are: ${known}`,
  });
}

function named(skills: readonly Skill[]): string {
  return skills.map(({ name }) => name).join(", ");
}
