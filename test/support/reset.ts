import { afterEach } from "vitest";
import { onFaultPoint } from "../../src/internal/fault-point.ts";

// Files share a process, and a test that fails may not get to its own end.
afterEach(() => onFaultPoint(null));
