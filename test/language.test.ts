import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tokenizer } from 'acorn'
import { expect, test } from 'vitest'

/** A phrase that reads like a translation, and what to write instead. CONTRIBUTING.md explains how we write. */
const phrases: readonly { readonly pattern: RegExp; readonly write: string }[] = [
  { pattern: /\b(?:tells?|telling|told)\b/i, write: 'print, show, report, log, return or notify' },
  {
    pattern: /\b(?:whoever|whomever|whatever|those (?:who|whom|that))\b/i,
    write: 'name the actor: the caller, the user',
  },
  { pattern: /\b(?:nobody|somebody)\b/i, write: '"no one", "no user", "someone" or "another user"' },
  { pattern: /\bstands\b|\bstand(?:ing)? (?:in|at|there|behind|before)\b/i, write: '"is in" or "appears"' },
  { pattern: /\b(?:anew|once more)\b/i, write: 'again' },
  { pattern: /\b(?:goes|go|going|went) on\b/i, write: 'continue' },
  { pattern: /\b(?:by itself|by themselves)\b/i, write: 'automatically' },
  { pattern: /\bin vain\b/i, write: '"failed" or "timed out"' },
  { pattern: /\b(?:asked for|ask for access)\b/i, write: 'request, requested' },
  { pattern: /\bto be had\b/i, write: 'is available' },
  { pattern: /\bas (?:it|they) should be\b/i, write: 'valid' },
  { pattern: /\b(?:foresee|foresees|foreseen|foresight)\b/i, write: 'preview' },
  { pattern: /\bthe predecessor\b/i, write: 'OpenUnison' },
  {
    pattern: /\b(?:people|users?|person) (?:who|that) (?:is|are|was|were) switched off\b/i,
    write: 'deactivated users',
  },
  { pattern: /\bchosen ends?\b/i, write: 'expiry date' },
  { pattern: /\bintents?\b|\bintended changes?\b/i, write: 'planned change' },
  { pattern: /\b(?:wish|wishes|wished)\b/i, write: 'request, options, want' },
  { pattern: /\bchores?\b/i, write: 'maintenance tasks' },
]
const anyPhrase = new RegExp(phrases.map(({ pattern }) => pattern.source).join('|'), 'i')

/** Texts that may keep a phrase, each with its reason. */
const allowed: readonly { readonly file: string; readonly text: string }[] = []

interface Text {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** The lines of a page without code: fenced blocks and `code` are names, not prose. */
function* prose(file: string): Generator<Text> {
  let fenced = false
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (/^\s*```/.test(line)) fenced = !fenced
    else if (!fenced) yield { file, line: index + 1, text: line.replace(/`[^`]*`/g, '`code`') }
  }
}

function* messages(file: string): Generator<Text> {
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const text = /^\s*"[^"]+": "(.*)",?$/.exec(line)?.[1]
    if (text !== undefined) yield { file, line: index + 1, text }
  }
}

const statement = /^\s*(?:select|insert into|update \w+ set|delete from|with \w+ as)\b/i

/** The string literals with more than one word, except SQL. Comments are left to reviewers. */
function* literals(file: string): Generator<Text> {
  const source = readFileSync(file, 'utf8')
  // Most phrases are in comments, and reading tokens takes time.
  if (!anyPhrase.test(source.replace(/^\s*(?:\/\/|\/?\*).*$/gm, ''))) return
  for (const token of tokenizer(stripTypeScriptTypes(source), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
  })) {
    if (!('value' in token) || (token.type.label !== 'string' && token.type.label !== 'template')) continue
    const text = String(token.value)
    if (text.includes(' ') && !statement.test(text))
      yield { file, line: token.loc?.start.line ?? 0, text: text.replace(/`[^`]*`/g, '`code`') }
  }
}

const findings = (texts: Iterable<Text>): string[] =>
  Array.from(texts).flatMap(({ file, line, text }) =>
    phrases
      .filter(({ pattern }) => pattern.test(text))
      .filter(() => !allowed.some((one) => one.file === file && text.includes(one.text)))
      .map(({ pattern, write }) => `${file}:${line}: "${pattern.exec(text)?.[0]}": write ${write}`),
  )

const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/README.md', 'deploy/**/*.md'])
  // Written from test titles by `npm run specification`.
  .filter((file) => file !== 'docs/specification.md')
const sources = globSync('src/**/*.ts').filter((file) => !/\.test\.ts$|conformance/.test(file))

test('docs are in plain English', () => {
  expect(pages.flatMap((file) => findings(prose(file)))).toEqual([])
})

test('messages of the portal and of the other pages are in plain English', () => {
  for (const file of [
    'portal/src/i18n/en.json',
    'portal/src/i18n/console/en.json',
    'portal/src/i18n/apis/en.json',
    'portal/src/i18n/settings/en.json',
    'src/sdk/page/page-texts/en.json',
  ]) {
    expect(findings(messages(file))).toEqual([])
  }
})

test('errors, logs, descriptions and the command line are in plain English', () => {
  expect(sources.flatMap((file) => findings(literals(file)))).toEqual([])
})

test('a phrase is found in prose, and not in code', () => {
  const found = (text: string): string[] => findings([{ file: 'page.md', line: 3, text }])
  expect(found('The log tells who came.')).toEqual([
    'page.md:3: "tells": write print, show, report, log, return or notify',
  ])
  expect(found('There is no user, and the key is no longer valid.')).toEqual([])
})
