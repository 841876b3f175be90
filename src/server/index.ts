export { HttpApi } from "./api.ts";
export type { AnyGraph, ApiOptions } from "./api.ts";
export { listen } from "./listen.ts";
export type { Listening, ListenOptions } from "./listen.ts";
export type { Rate } from "./rate-limit.ts";
