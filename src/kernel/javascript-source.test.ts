import { expect, test } from 'vitest'
import { checkJavaScript, checkJavaScriptModule } from '#kernel/javascript-source.ts'

test('plain functions are a script, text with import or export is a module', () => {
  expect(checkJavaScript('function findUser(id) { return null }').form).toBe('script')
  expect(checkJavaScript('counter = 010').form).toBe('script')
  expect(checkJavaScript("import fs from 'node:fs'\nfunction f() {}").form).toBe('module')
  expect(checkJavaScript('export const f = () => 1').form).toBe('module')
  expect(checkJavaScript('const x = await 1').form).toBe('module')
})

test('types are taken out without moving anything', () => {
  const { form, text } = checkJavaScript('function f(a: string) {\n  return a\n}')
  expect(form).toBe('module')
  expect(text).toBe('function f(a        ) {\n  return a\n}')
})

test.each([
  ['function f( {', /line 1: /],
  ['let a = 1\nlet a = 2', /line 2: .*already been declared/],
  ['export const a = 1\nexport function b( {', /line 2: /],
  ['function f() {}\n)', /line 2: /],
  ['// fine\nenum A { x }', /line 2: /],
])('a syntax error is told with its line: %s', (source, message) => {
  expect(() => checkJavaScript(source)).toThrow(message)
})

test('nothing of the text runs while it is checked', () => {
  checkJavaScript('globalThis.ranWhileChecked = true')
  checkJavaScript('globalThis.ranWhileChecked = true; export {}')
  expect('ranWhileChecked' in globalThis).toBe(false)
})

test('a file is a module even without import and export', () => {
  expect(checkJavaScriptModule('function f() {}').form).toBe('module')
  expect(() => checkJavaScriptModule('function f() {')).toThrow()
})

test('the length is bounded', () => {
  expect(() => checkJavaScript('x'.repeat(1_000_001))).toThrow(/longer/)
})
