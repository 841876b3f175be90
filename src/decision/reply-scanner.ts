const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/**
 * Reads the top-level string `reply` out of a JSON object while it is still being written. Feed it
 * pieces of any size; it gives back what each adds to the reply.
 *
 * @example scanner.push('{"next":"done","reply":"Hel') // "Hel"
 */
export class ReplyScanner {
  private depth = 0;
  private key = "";
  private inString = false;
  private expectsKey = true;
  private escape = "";
  /** The first half of a character, until the other one comes: pieces may be written out one by one. */
  private half = "";

  push(piece: string): string {
    let added = this.half;
    this.half = "";
    for (const character of piece) {
      if (!this.inString) {
        this.structure(character);
        continue;
      }
      const text = this.stringCharacter(character);
      if (text === null) continue;
      if (this.depth !== 1) continue;
      if (this.expectsKey) this.key += text;
      else if (this.key === "reply") added += text;
    }
    if (!/[\ud800-\udbff]$/.test(added)) return added;
    this.half = added.slice(-1);
    return added.slice(0, -1);
  }

  private structure(character: string): void {
    switch (character) {
      case '"':
        this.inString = true;
        if (this.depth === 1 && this.expectsKey) this.key = "";
        break;
      case "{":
      case "[":
        this.depth++;
        if (this.depth === 1) {
          this.expectsKey = true;
          this.key = "";
        }
        break;
      case "}":
      case "]":
        this.depth--;
        break;
      case ":":
        if (this.depth === 1) this.expectsKey = false;
        break;
      case ",":
        if (this.depth === 1) this.expectsKey = true;
        break;
    }
  }

  /** The text that a character inside a string stands for; null while an escape is not complete. */
  private stringCharacter(character: string): string | null {
    if (this.escape) {
      this.escape += character;
      if (this.escape.startsWith("\\u")) {
        if (this.escape.length < 6) return null;
        const code = Number.parseInt(this.escape.slice(2), 16);
        this.escape = "";
        return String.fromCharCode(code);
      }
      this.escape = "";
      return ESCAPES[character] ?? character;
    }
    if (character === "\\") {
      this.escape = "\\";
      return null;
    }
    if (character === '"') {
      this.inString = false;
      return null;
    }
    return character;
  }
}
