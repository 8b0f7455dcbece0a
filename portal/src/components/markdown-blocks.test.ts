import { describe, expect, test } from 'vitest'
import { markdownBlocks, markdownText } from './markdown-blocks.ts'

const inlines = (text: string): unknown => {
  const [block] = markdownBlocks(text)
  return block?.kind === 'paragraph' ? block.content : block
}

test('blank lines separate paragraphs, and other lines are joined', () => {
  expect(markdownBlocks('One\ntwo\n\nThree')).toEqual([
    { kind: 'paragraph', content: ['One two'] },
    { kind: 'paragraph', content: ['Three'] },
  ])
  expect(markdownBlocks('')).toEqual([])
})

test('lists have bullets or numbers', () => {
  expect(markdownBlocks('You get:\n- mail\n- a **desk**\n  by the window\n1. first\n2) second')).toEqual([
    { kind: 'paragraph', content: ['You get:'] },
    {
      kind: 'ul',
      items: [['mail'], ['a ', { kind: 'strong', content: ['desk'] }, ' by the window']],
    },
    { kind: 'ol', items: [['first'], ['second']] },
  ])
})

test('bold, italic, code and links are recognized, also within each other', () => {
  expect(inlines('**a _b_** `c*d*` [e **f**](https://x)')).toEqual([
    { kind: 'strong', content: ['a ', { kind: 'em', content: ['b'] }] },
    ' ',
    { kind: 'code', text: 'c*d*' },
    ' ',
    { kind: 'link', address: 'https://x', content: ['e ', { kind: 'strong', content: ['f'] }] },
  ])
})

test('the plain text has no marks', () => {
  expect(markdownText('**a** [b](https://x)\n\n- `c`\n- <i>')).toBe('a b c <i>')
})

describe('text stays text', () => {
  test.each([
    '<script>alert(1)</script>',
    '<b>bold</b> &amp;',
    'snake_case_name and 2 * 3 * 4',
    '[no address]() and [a](b c)',
    '# no heading',
    '![no image](',
    '**open',
    '``',
  ])('%s', (text) => {
    expect(inlines(text)).toEqual([text])
  })

  test('also where it is nested deeply or very long', () => {
    const deep = `${'[*'.repeat(5_000)}x${'*](y)'.repeat(2_000)}`
    expect(JSON.stringify(markdownBlocks(deep)).length).toBeLessThan(200_000)
    expect(JSON.stringify(markdownBlocks('* '.repeat(200_000))).length).toBeLessThan(50_000)
  })
})
