import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createElement, type ReactElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { RegisterConfig, SubmittedResponse } from '#features/registration/contract/register.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { registerConfig, registerField } from '../../../test/register-config.ts'
import type { Catalog } from '../../app/messages.ts'
import en from '../../i18n/en.json'

/** What the page shows for each field of the specification, section 2.1. */

const texts = { frontPage: { title: 'Join us', text: 'Tell us who you are' }, submitButtonText: 'Send it' }

/** The elements of the page, without its styles. */
let shown: (more?: Partial<RegisterConfig>) => string
/** The same after a submission. */
let submitted: (more: Partial<RegisterConfig>, answer: SubmittedResponse) => string

/** The settings are in the page, and are read when the first part is loaded. */
beforeAll(async () => {
  const settings = JSON.stringify({ base: '', title: '', nonce: '', apis: { register: '/register' } })
  vi.stubGlobal('document', { getElementById: () => ({ textContent: settings }) })
  await import('../../app/settings.ts')
  vi.unstubAllGlobals()
  const { PublicRegistration } = await import('./public-registration.tsx')
  const { Submitted } = await import('./register-view.tsx')
  const { Themed } = await import('../../app/themed.tsx')
  const { TranslationProvider } = await import('../../app/i18n.tsx')
  const { registerConfigQuery } = await import('../../api/register.ts')
  const first = { language: 'en', catalog: en as unknown as Catalog } as const
  const page = (children: ReactElement, client = new QueryClient()) => {
    const translated = createElement(TranslationProvider, { first, children })
    const html = renderToStaticMarkup(createElement(QueryClientProvider, { client }, translated))
    return html.replaceAll(/<style.*?<\/style>/gs, '')
  }
  submitted = (more, answer) => {
    const config = registerConfig(more)
    const children = createElement(Submitted, { config, answer, address: 'ada@example.com' }, 'The next form')
    return page(createElement(Themed, { colors: config, children }))
  }
  shown = (more) => {
    vi.stubGlobal('window', { location: { search: '' } })
    vi.stubGlobal('sessionStorage', { getItem: () => null })
    const client = new QueryClient()
    client.setQueryData(registerConfigQuery.queryKey, registerConfig({ ...texts, ...more }))
    return page(createElement(PublicRegistration), client)
  }
})
afterEach(() => void vi.unstubAllGlobals())

const count = (pattern: RegExp, more?: Partial<RegisterConfig>): number =>
  Array.from(shown(more).matchAll(pattern)).length

test('frontPage and submitButtonText are the title, the text and the button', () => {
  expect(shown()).toMatch(/<h1[^>]*>Join us<\/h1>/)
  expect(shown()).toContain('Tell us who you are')
  expect(shown()).toMatch(/<button[^>]*type="submit"[^>]*>(?:<span[^>]*>)*Send it</)
})

test('submittedText is shown after a submission; before a mail is confirmed, the page says where it went', () => {
  const text = { submittedText: 'We write to you' }
  const answer = { addNewUsers: false, workflowId: 'w-1' }
  expect(shown(text)).not.toContain('We write to you')
  expect(submitted(text, answer)).toContain('We write to you')
  expect(submitted(text, answer)).not.toContain('The next form')
  expect(submitted(text, { ...answer, addNewUsers: true })).toMatch(/We write to you.*The next form/s)
  const mailed = submitted(text, { ...answer, verificationSent: true })
  expect(mailed).toContain('ada@example.com')
  expect(mailed).not.toContain('We write to you')
})

test('requireReason shows a field for the reason, and reasonIsList the reasons as a list', () => {
  expect(count(/>Reason</g)).toBe(0)
  expect(shown({ requireReason: true })).toMatch(/>Reason<.*<textarea/s)
  const list = shown({ reasonIsList: true, reasons: ['work', 'study'] })
  expect(list).toMatch(/>Reason<.*<select.*<option[^>]*>work<\/option><option[^>]*>study<\/option>/s)
  expect(list).not.toContain('<textarea')
})

test('preSetPassword shows the password fields', () => {
  const fields = /<input[^>]*type="password"/g
  expect(count(fields)).toBe(0)
  expect(count(fields, { preSetPassword: true, passwordRules: { minChars: 8, maxChars: 128 } })).toBe(2)
})

test('requireReCaptcha shows a box for the CAPTCHA', () => {
  const box = /Loading the security check/g
  expect(count(box)).toBe(0)
  expect(count(box, { requireReCaptcha: true, humanCheck: { kind: 'recaptcha-v2', siteKey: 'x' } })).toBe(1)
})

test('requireTermsAndConditions shows a checkbox', () => {
  const box = /<input[^>]*type="checkbox"/g
  expect(count(box)).toBe(0)
  const accepting = { requireTermsAndConditions: true, termsAndConditionsText: 'Be nice' }
  expect(count(box, accepting)).toBe(1)
  expect(shown(accepting)).toContain('Be nice')
})

test('an attribute has its label and its kind of field; one that is not shown is absent', () => {
  const values = [
    { name: 'Blue', value: 'blue', num: 0 },
    { name: 'Red', value: 'red', num: 1 },
  ]
  const fieldOf = (more: Partial<FormAttributeView>) =>
    shown({ attributes: [registerField('x', { displayName: 'Label of x', required: false, ...more })] })
  expect(fieldOf({})).toMatch(/>Label of x<\/label>.*<input/s)
  expect(fieldOf({})).not.toContain('readOnly')
  expect(fieldOf({ readOnly: true })).toMatch(/<input[^>]*readOnly/)
  expect(fieldOf({ required: true })).toMatch(/<input[^>]*required/)
  expect(fieldOf({ type: 'text-area' })).toContain('<textarea')
  expect(fieldOf({ type: 'list', values })).toMatch(/<select.*value="blue"[^>]*>Blue<.*value="red"[^>]*>Red</s)
  expect(fieldOf({ type: 'text-list', values })).toMatch(/<input[^>]*(?:aria-autocomplete|aria-haspopup)/)
  expect(fieldOf({ show: false })).not.toContain('Label of x')
})
