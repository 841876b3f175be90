import { readFileSync } from "node:fs";

/** A question on a real log, with the facts that the right answer has. They are computed from its text alone. */
export interface RealTask {
  readonly file: string;
  readonly question: string;
  /** The lines that it is about; none where the log has no answer. */
  readonly lines: readonly number[];
  /** The most frequent values with their numbers of lines; several where they are equally frequent. */
  readonly most: readonly string[];
  readonly mostCount: number;
  /** How many lines the log has. */
  readonly of: number;
}

interface Asked {
  readonly question: string;
  /** What the lines that count hold; upper and lower case are alike, as in a search for words. */
  readonly holds: RegExp;
  /** What they are counted by. */
  readonly by?: RegExp;
}

const OPENSSH: readonly Asked[] = [
  { question: "Which addresses made break-in attempts?", holds: /BREAK-IN ATTEMPT/, by: /\[([\d.]+)\] failed/ },
  {
    question: "How many authentication failures are there, by source?",
    holds: /authentication failure/i,
    by: /rhost=(\S+)/,
  },
  {
    question: "How often does 'Failed password' occur, by user?",
    holds: /Failed password/,
    by: /for (?:invalid user )?(\S+) from/,
  },
  { question: "How often does 'Failed password' occur, by address?", holds: /Failed password/, by: /from ([\d.]+)/ },
  { question: "Which addresses caused 'Invalid user'?", holds: /invalid user/i, by: /\b(\d+\.\d+\.\d+\.\d+)\b/ },
  { question: "How often does 'Accepted password' occur, by user?", holds: /Accepted password/, by: /for (\S+) from/ },
  {
    question: "How often does 'Accepted password' occur, by address?",
    holds: /Accepted password/,
    by: /from ([\d.]+)/,
  },
  {
    question: "How often does 'Received disconnect' occur, by address?",
    holds: /Received disconnect/,
    by: /from ([\d.]+)/,
  },
  { question: "How often does 'Connection closed' occur, by address?", holds: /Connection closed/, by: /by ([\d.]+)/ },
  {
    question: "How often does 'Did not receive identification' occur, by address?",
    holds: /Did not receive identification/,
    by: /from ([\d.]+)/,
  },
  { question: "How often does 'Too many authentication failures' occur?", holds: /Too many authentication failures/ },
  { question: "How often does 'message repeated' occur?", holds: /message repeated/ },
  { question: "How often does 'session opened' occur?", holds: /session opened/ },
  { question: "How often does 'Bye Bye' occur, by address?", holds: /Bye Bye/, by: /from ([\d.]+)/ },
  { question: "How often does 'ignoring max retries' occur?", holds: /ignoring max retries/ },
  { question: "How many errors are there?", holds: /: (?:error|fatal): / },
];
const LINUX: readonly Asked[] = [
  {
    question: "How many authentication failures are there, by source?",
    holds: /authentication failure/,
    by: /rhost=(\S+)/,
  },
  {
    question: "Who is it about where 'authentication failure' occurs?",
    holds: /authentication failure/,
    by: /user=(\S+)/,
  },
  { question: "How often does 'connection from' occur, by address?", holds: /connection from/, by: /from ([\d.]+)/ },
  { question: "How often does 'session opened' occur?", holds: /session opened/ },
  { question: "How often does 'session closed' occur?", holds: /session closed/ },
  { question: "How often does 'user unknown' occur?", holds: /user unknown/i },
  {
    question: "How often does 'ANONYMOUS FTP LOGIN' occur, by address?",
    holds: /ANONYMOUS FTP LOGIN/,
    by: /FROM ([\d.]+)/,
  },
  { question: "How often does 'exited abnormally' occur?", holds: /exited abnormally/ },
  {
    question: "How often does 'startup succeeded' occur, by process?",
    holds: /startup succeeded/,
    by: /^\w+ +\d+ \S+ \S+ ([\w./-]+)/,
  },
  { question: "How often does 'removing device node' occur?", holds: /removing device node/ },
  {
    question: "How often does 'Authentication failed' occur, by address?",
    holds: /authentication failed/i,
    by: /from ([\d.]+)/,
  },
  { question: "How often does 'can't get client address' occur?", holds: /can't get client address/i },
  { question: "How often does 'kernel:' occur?", holds: /kernel:/ },
];
const APACHE: readonly Asked[] = [
  { question: "How many errors are there?", holds: /\] \[error\] / },
  { question: "How many errors are there, by hour?", holds: /\] \[error\] /, by: /^\[\w+ \w+ (\d\d \d\d):/ },
  {
    question: "How often does 'Directory index forbidden' occur, by address?",
    holds: /Directory index forbidden/,
    by: /client ([\d.]+)/,
  },
  { question: "How often does 'workerEnv in error state' occur?", holds: /workerEnv in error state/ },
  { question: "How often does 'error state 7' occur?", holds: /error state 7/ },
  { question: "How often does 'Found child' occur?", holds: /Found child/ },
  { question: "How often does 'Can't find child' occur?", holds: /Can't find child/ },
  { question: 'How often does "mod_jk child init" occur?', holds: /mod_jk child init/ },
  { question: "How often does 'workerEnv.init() ok' occur?", holds: /workerEnv\.init\(\) ok/ },
];
/** Questions without an answer in any of the logs. */
const NEVER: readonly Asked[] = [
  { question: "How often does 'kernel panic' occur?", holds: /kernel panic/i },
  { question: "Why does the watchdog reset the board?", holds: /watchdog (?:reset|bite)/i },
  { question: "Why does the i2c bus hang?", holds: /i2c timeout/i },
  { question: "Why is the ethernet link unstable?", holds: /carrier lost/i },
];

/** The tasks on the logs of a folder. */
export function realTasks(folder: string): readonly RealTask[] {
  const sets: readonly (readonly [string, readonly Asked[]])[] = [
    ["OpenSSH/OpenSSH_2k.log", [...OPENSSH, ...NEVER]],
    ["Linux/Linux_2k.log", [...LINUX, ...NEVER.slice(0, 3)]],
    ["Apache/Apache_2k.log", [...APACHE, ...NEVER]],
  ];
  return sets.flatMap(([file, asked]) => {
    const lines = readFileSync(`${folder}/${file}`, "utf8").split(/\r?\n/);
    return asked.map((one) => taskOf(file, lines, one));
  });
}

function taskOf(file: string, lines: readonly string[], { question, holds, by }: Asked): RealTask {
  const pattern = new RegExp(holds, "i");
  const found = lines.flatMap((line, index) => (pattern.test(line) ? [{ line, number: index + 1 }] : []));
  const counts = new Map<string, number>();
  for (const { line } of found) {
    const value = by?.exec(line)?.[1];
    if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const mostCount = Math.max(0, ...counts.values());
  const most = [...counts].filter(([, count]) => count === mostCount).map(([value]) => value);
  return { file, question, lines: found.map(({ number }) => number), most, mostCount, of: lines.length };
}
