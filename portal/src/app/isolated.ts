/** Characters that change the direction of the text after them. */
const turning = /[\u202a-\u202e\u2066-\u2069]/g
const turns = /[\u202a-\u202e\u2066-\u2069]/
const rightToLeft = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\u200f/u

/**
 * The text in its written order, so that a name can neither look like another one nor reverse its neighbors.
 * Right-to-left text keeps its direction, and does not affect its neighbors.
 */
export function isolated(text: string): string {
  const plain = turns.test(text) ? text.replace(turning, '') : text
  return rightToLeft.test(plain) ? `\u2068${plain}\u2069` : plain
}
