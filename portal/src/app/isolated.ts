/** Characters that turn the direction of the text behind them. */
const turning = /[\u202a-\u202e\u2066-\u2069]/g
const turns = /[\u202a-\u202e\u2066-\u2069]/
const rightToLeft = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\u200f/u

/**
 * The text in the order in which it is written, so that a name can neither be read as another one nor turn what stands
 * beside it. Text from right to left keeps its direction, and does not give it to its neighbours.
 */
export function isolated(text: string): string {
  const plain = turns.test(text) ? text.replace(turning, '') : text
  return rightToLeft.test(plain) ? `\u2068${plain}\u2069` : plain
}
