// `statecard/queue`: what the commands worker and submit do, from code. Apart, so that BullMQ is loaded only here.
export { submitAnswer, submitTask } from "./submit.ts";
export type { SubmitOptions, Submitted } from "./submit.ts";
export { TaskQueue } from "./task-queue.ts";
export type { QueueOptions, WakeOptions } from "./task-queue.ts";
export { TaskWorker } from "./worker.ts";
export type { WorkerOptions } from "./worker.ts";
export type { Limit } from "./slots.ts";
