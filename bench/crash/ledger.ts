/** An effect as the world remembers it. */
export interface Effect {
  readonly key: string;
  readonly [name: string]: unknown;
}

/** The ledger's process, as tools and the benchmark see it. */
export class Ledger {
  private readonly url: string;

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}/`;
  }

  async add(task: string, effect: Effect): Promise<void> {
    await fetch(this.url + encodeURIComponent(task), { method: "POST", body: JSON.stringify(effect) });
  }

  async of(task: string): Promise<readonly Effect[]> {
    const response = await fetch(this.url + encodeURIComponent(task));
    return (await response.json()) as Effect[];
  }
}
