/**
 * The value of an arithmetic expression of numbers, `+ - * /` and parentheses, to two digits and with
 * at least one: `152 + 103` is `255.0`. Parsed here, so that no text is ever run as code.
 *
 * @throws where it is no such expression.
 */
export function calculate(expression: string): string {
  if (!/^[\d+\-*/(). ]*$/.test(expression)) throw new Error("invalid characters in expression");
  const tokens = expression.match(/\d+(?:\.\d*)?|\.\d+|[+\-*/()]/g) ?? [];
  let at = 0;
  const take = (...wanted: readonly string[]) => {
    const token = tokens[at];
    if (token === undefined || !wanted.includes(token)) return null;
    at += 1;
    return token;
  };

  function sum(): number {
    let value = product();
    for (let sign = take("+", "-"); sign; sign = take("+", "-")) value += sign === "+" ? product() : -product();
    return value;
  }

  function product(): number {
    let value = factor();
    for (let sign = take("*", "/"); sign; sign = take("*", "/")) {
      const next = factor();
      if (sign === "/" && next === 0) throw new Error("division by zero");
      value = sign === "*" ? value * next : value / next;
    }
    return value;
  }

  function factor(): number {
    const sign = take("+", "-");
    if (sign) return sign === "-" ? -factor() : factor();
    if (take("(")) {
      const value = sum();
      if (!take(")")) throw new Error("a parenthesis is not closed");
      return value;
    }
    const token = tokens[at];
    if (token === undefined || !/\d/.test(token)) throw new Error(`invalid expression: ${expression}`);
    at += 1;
    return Number(token);
  }

  const value = sum();
  if (at < tokens.length) throw new Error(`invalid expression: ${expression}`);
  const rounded = Number(value.toFixed(2));
  return Number.isInteger(rounded) ? rounded.toFixed(1) : String(rounded);
}
