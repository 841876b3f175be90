/** Whether a text is written in Chinese. */
export function isChinese(text: string): boolean {
  return /\p{Script=Han}/u.test(text);
}
