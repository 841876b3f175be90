import { EXIT } from "./exit.ts";

export const STOP_SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Who has started this process; noted before anything takes time, since it may go at any moment. */
const STARTED_BY = process.ppid;
const LOOKED_EVERY_MS = 1000;
/** The same Ctrl-C comes twice within this. */
const SAME_MS = 200;

/**
 * Calls back whenever this process is asked to stop: by a signal or, where npm has started it (npx, a script), by
 * the end of whoever has started it. npm passes signals to the shell that it runs a command in; that one dies of them
 * and tells nobody. Where there is no shell between, a Ctrl-C comes from the terminal and once more from npm.
 *
 * @returns how to listen no more.
 */
export function onStop(
  listener: () => void,
  events: readonly (NodeJS.Signals | "disconnect")[] = STOP_SIGNALS,
): () => void {
  const isOfNpm = process.env.npm_lifecycle_event !== undefined;
  let lastAt = -Infinity;
  const onAsked = (): void => {
    // With its whole group, the shell gets the signal too: its end is no second one.
    clearInterval(watch);
    const isSame = isOfNpm && performance.now() - lastAt < SAME_MS;
    lastAt = performance.now();
    if (!isSame) listener();
  };
  const watch = isOfNpm
    ? setInterval(() => process.ppid !== STARTED_BY && onAsked(), LOOKED_EVERY_MS).unref()
    : undefined;
  for (const event of events) process.on(event, onAsked);
  return () => {
    clearInterval(watch);
    for (const event of events) process.off(event, onAsked);
  };
}

/** Waits until it is asked to stop and has done so, in order; asked a second time, the process ends at once. */
export function untilStopped(
  stop: () => Promise<void>,
  says: string,
  events?: readonly (NodeJS.Signals | "disconnect")[],
): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false;
    onStop(() => {
      if (isStopping) process.exit(EXIT.interrupted);
      isStopping = true;
      process.stderr.write(`${says}\n`);
      stop().then(resolve, reject);
    }, events);
  });
}
