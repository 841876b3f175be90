import { existsSync, readFileSync } from "node:fs";
import { countTokens } from "../src/internal/tokens.ts";
import { catalogue } from "../src/skills/stages.ts";
import { chooseSkills } from "../src/skills/choose.ts";
import { loadSkills } from "../src/skills/load.ts";
import type { Skill } from "../src/skills/skill.ts";
import { dataFolder } from "../test/support/trajectories.ts";
import type { Report, Table } from "./report.ts";
import { PlainBm25 } from "./skills-bm25.ts";
import { REPORTED, TUNING, type SkillRequest } from "./skills-requests.ts";

const LIMIT = 5;
const TARGET = 0.95;

type Ranking = (request: string) => Promise<readonly Skill[]> | readonly Skill[];

interface Measured {
  readonly name: string;
  readonly requests: number;
  readonly first: number;
  readonly among: number;
  /** Mean of one divided by the place of the right skill, 0 where it is not among the chosen. */
  readonly reciprocal: number;
  readonly missed: readonly string[];
}

/** Whether the right one of many real skills is among the five that are chosen for a request. */
export async function run(): Promise<Report | null> {
  const folder = `${dataFolder}/skills`;
  if (!existsSync(folder)) {
    process.stderr.write(`skills: skipped, ${folder} is missing; set STATECARD_DATA to the folder of recorded data\n`);
    return null;
  }
  const { skills } = loadSkills(folder);
  const rankings: Readonly<Record<string, Ranking>> = {
    chooseSkills: (request) => chooseSkills(skills, request, { limit: LIMIT }),
    "plain BM25, whole file": plainRanking(skills, ({ file }) => readFileSync(file, "utf8")),
    "plain BM25, name and description": plainRanking(skills, ({ name, description }) => `${name}\n${description}`),
  };
  const [reported, tuning] = await Promise.all([REPORTED, TUNING].map((requests) => measureAll(rankings, requests)));
  if (!reported || !tuning) throw new Error("nothing was measured");
  const among = reported[0]?.among ?? 0;
  return {
    name: "skills",
    title: "choosing among real skills",
    summary: `${skills.length} skills of public repositories, ${REPORTED.length + TUNING.length} requests written from their instructions alone: no three words in a row are those of a description. Weights were tuned on ${TUNING.length} requests; the other ${REPORTED.length}, about other skills, were looked at once they were fixed.`,
    seed: 0,
    settings: { skills: skills.length, limit: LIMIT },
    tables: [
      table("The right skill among those chosen: reported requests", reported, skills.length),
      table("The same for the requests that weights were tuned on", tuning, skills.length),
      await tokenTable(skills),
    ],
    limits: [
      {
        promise: "reported requests without their skill among five",
        value: rounded(1 - among),
        limit: rounded(1 - TARGET),
      },
    ],
    notShown: [
      "Requests of real users: one person wrote these, in English, each for one skill and with its instructions at hand, whose words they share more often than a stranger's would. Some are answered as well by another skill, which counts as a miss.",
      "Collections of hundreds of skills, or of skills that resemble one another more: these are of many subjects.",
      "What a model makes of the five: it may still take the wrong one, or none.",
      "Ranking by meaning: no embeddings run offline here. With them, ranks of both are added up.",
    ],
    raw: { reported, tuning },
  };
}

const rounded = (value: number) => Number(value.toFixed(3));

function plainRanking(skills: readonly Skill[], textOf: (skill: Skill) => string): Ranking {
  const index = new PlainBm25(skills.map(textOf));
  return (request) =>
    index
      .rank(request)
      .flatMap((position) => skills[position] ?? [])
      .slice(0, LIMIT);
}

function measureAll(rankings: Readonly<Record<string, Ranking>>, requests: readonly SkillRequest[]) {
  return Promise.all(Object.entries(rankings).map(([name, ranking]) => measure(name, ranking, requests)));
}

async function measure(name: string, ranking: Ranking, requests: readonly SkillRequest[]): Promise<Measured> {
  const places: number[] = [];
  const missed: string[] = [];
  for (const { skill, text } of requests) {
    const place = (await ranking(text)).findIndex((chosen) => chosen.name === skill);
    places.push(place);
    if (place < 0) missed.push(`${skill}: ${text}`);
  }
  const share = (holds: (place: number) => boolean) => places.filter(holds).length / requests.length;
  return {
    name,
    requests: requests.length,
    first: share((place) => place === 0),
    among: share((place) => place >= 0),
    reciprocal: places.reduce((sum, place) => sum + (place < 0 ? 0 : 1 / (place + 1)), 0) / requests.length,
    missed,
  };
}

function table(title: string, measured: readonly Measured[], skills: number): Table {
  const harmonic = Array.from({ length: LIMIT }, (_, place) => 1 / (place + 1)).reduce((sum, part) => sum + part, 0);
  return {
    title,
    columns: ["side", "first", `among ${LIMIT}`, "mean reciprocal place", "missed"],
    rows: [
      ...measured.map(({ name, first, among, reciprocal, missed }) => [
        name,
        rounded(first),
        rounded(among),
        rounded(reciprocal),
        missed.length,
      ]),
      ["random (expected)", rounded(1 / skills), rounded(LIMIT / skills), rounded(harmonic / skills), null],
    ],
    note: `${measured[0]?.requests ?? 0} requests`,
  };
}

/** What a choice spares. */
async function tokenTable(skills: readonly Skill[]): Promise<Table> {
  const chosen = await Promise.all(REPORTED.map(({ text }) => chooseSkills(skills, text, { limit: LIMIT })));
  const each = chosen.map((some) => countTokens(catalogue(some)));
  const mean = each.reduce((sum, tokens) => sum + tokens, 0) / each.length;
  const bodies = skills.reduce((sum, { body }) => sum + countTokens(body), 0);
  return {
    title: "Tokens (o200k)",
    columns: ["what a model is shown", "tokens"],
    rows: [
      [`the lines of the ${LIMIT} that are chosen, on average`, Math.round(mean)],
      ["the lines of all", countTokens(catalogue(skills))],
      ["the instructions of all", bodies],
    ],
  };
}
