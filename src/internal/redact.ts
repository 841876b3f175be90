// Formats of keys that providers issue; what looks like one never reaches an error or a log.
const KEY_FORMATS = new RegExp(
  [
    String.raw`\b(?:sk|pk|rk)-[\w-]{8,}`,
    String.raw`\bgh[pousr]_\w{20,}`,
    String.raw`\bgithub_pat_\w{20,}`,
    String.raw`\bAKIA[0-9A-Z]{16}\b`,
    String.raw`\bAIza[\w-]{30,}`,
    String.raw`\bxox[abprs]-[\w-]{10,}`,
    String.raw`\bhf_\w{20,}`,
    String.raw`\b[Bb]earer\s+[\w.~+/-]{16,}=*`,
  ].join("|"),
  "g",
);

/** Replaces whatever looks like an API key. */
export function redact(text: string): string {
  return text.replaceAll(KEY_FORMATS, "[redacted]");
}
