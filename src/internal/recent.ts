/** Remembers what was made of the latest so many texts, the least recently used of which goes first. */
export class Recent<T> {
  private readonly made = new Map<string, T>();
  private readonly most: number;

  constructor(most: number) {
    this.most = most;
  }

  /** What was made of a text, made now where that is not remembered. */
  get(text: string, make: () => T): T {
    const made = this.made.has(text) ? (this.made.get(text) as T) : make();
    this.made.delete(text);
    if (this.made.size >= this.most) this.made.delete(this.made.keys().next().value ?? "");
    this.made.set(text, made);
    return made;
  }
}
