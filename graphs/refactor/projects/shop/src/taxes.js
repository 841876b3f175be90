export const taxes = { books: 0.05, other: 0.2 };

export function rateOf(kind) {
  return taxes[kind] ?? 0;
}
