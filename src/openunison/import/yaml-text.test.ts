import { expect, test } from 'vitest'
import { Document, parse, parseDocument } from 'yaml'
import { yamlText } from './yaml-text.ts'

const texts = [
  'function one() {}\n \nfunction two() {}\n\t\nand more than forty characters\n',
  'spaces at the end of a line  \n\n  and at the start, for more than forty characters',
  '  \n',
  '\n\n  x\n',
  'carriage returns\r\n \r\nand more than forty characters\r\n',
  '---\nname: "|-"\n...\n',
  '\u2028\n \n\u0085\n and more than forty characters',
]

test.each(texts)('%j stays the same text, as it was printed and as a block', (text) => {
  for (const document of [parseDocument(JSON.stringify({ spec: { text } })), new Document({ spec: { text } })]) {
    expect(parse(yamlText(document))).toEqual({ spec: { text } })
  }
})
