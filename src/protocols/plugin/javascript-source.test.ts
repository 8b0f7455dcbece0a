import { expect, test } from 'vitest'
import { checkJavaScript, checkJavaScriptModule } from './javascript-source.ts'

test('plain functions are a script, text with import or export is a module', () => {
  expect(checkJavaScript('function findUser(id) { return null }').form).toBe('script')
  expect(checkJavaScript('counter = 010').form).toBe('script')
  expect(checkJavaScript("import fs from 'node:fs'\nfunction f() {}").form).toBe('module')
  expect(checkJavaScript('export const f = () => 1').form).toBe('module')
  expect(checkJavaScript('const x = await 1').form).toBe('module')
})

test('types are removed without moving anything', () => {
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
])('a syntax error has its line: %s', (source, message) => {
  expect(() => checkJavaScript(source)).toThrow(message)
})

test('checking runs nothing of the text', () => {
  checkJavaScript('globalThis.ranWhileChecked = true')
  checkJavaScript('globalThis.ranWhileChecked = true; export {}')
  expect('ranWhileChecked' in globalThis).toBe(false)
})

test('a file is a module even without import and export', () => {
  expect(checkJavaScriptModule('function f() {}', 'a.js').form).toBe('module')
  expect(() => checkJavaScriptModule('function f() {', 'a.js')).toThrow()
})

test('types are removed from files that have them, and only there', () => {
  const typed = 'export const f = (a: string) => a'
  expect(checkJavaScriptModule(typed, 'a.js').text).toBe('export const f = (a        ) => a')
  expect(checkJavaScriptModule(typed, 'a.ts').text).toBe('export const f = (a        ) => a')
  const ambiguous = 'export default f<a>(b)'
  expect(checkJavaScriptModule(ambiguous, 'a.js').text).toBe(ambiguous)
  expect(checkJavaScriptModule(ambiguous, 'a.ts').text).toBe('export default f   (b)')
})

test('rejects text beyond the maximum length', () => {
  expect(() => checkJavaScript('x'.repeat(1_000_001))).toThrow(/longer/)
})
