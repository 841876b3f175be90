// Formats of keys that providers issue; what looks like one never reaches an error or a log.
const KEY_FORMATS =
  /\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bBearer\s+[A-Za-z0-9._~+/-]{16,}=*/g;

/** Replaces whatever looks like an API key. */
export function redact(text: string): string {
  return text.replaceAll(KEY_FORMATS, "[redacted]");
}
