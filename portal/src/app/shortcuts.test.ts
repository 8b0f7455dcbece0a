import { expect, test } from 'vitest'
import { meaningOf, pageKeys, takesText } from './shortcuts.ts'

const press = (key: string, more: Partial<Record<'ctrlKey' | 'metaKey' | 'altKey', boolean>> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
})

test('Ctrl-K and ⌘K open the palette, also if single keys are off', () => {
  for (const areOn of [true, false]) {
    expect(meaningOf(press('k', { ctrlKey: true }), false, areOn)).toEqual({ kind: 'action', action: 'palette' })
    expect(meaningOf(press('K', { metaKey: true }), true, areOn)).toEqual({ kind: 'action', action: 'palette' })
  }
  expect(meaningOf(press('k', { ctrlKey: true, altKey: true }), false, true)).toBe(undefined)
})

test('g and a letter open a page', () => {
  expect(meaningOf(press('g'), false, true)).toEqual({ kind: 'wait' })
  expect(meaningOf(press('r'), true, true)).toEqual({ kind: 'page', id: 'requests' })
  expect(meaningOf(press('r'), false, true)).toBe(undefined)
  expect(meaningOf(press('x'), true, true)).toBe(undefined)
  expect(new Set(pageKeys.map(({ key }) => key)).size).toBe(pageKeys.length)
})

test('single keys mean nothing if they are off, or with a modifier', () => {
  expect(['g', '/', '?'].map((key) => meaningOf(press(key), false, false))).toEqual([undefined, undefined, undefined])
  expect(meaningOf(press('/', { ctrlKey: true }), false, true)).toBe(undefined)
  expect(meaningOf(press('?'), false, true)).toEqual({ kind: 'action', action: 'help' })
})

test('fields take text, buttons do not', () => {
  const element = (tagName: string, isContentEditable = false) => ({ tagName, isContentEditable })
  expect(['INPUT', 'TEXTAREA', 'SELECT'].map((name) => takesText(element(name)))).toEqual([true, true, true])
  expect([takesText(element('BUTTON')), takesText(element('DIV', true))]).toEqual([false, true])
})
