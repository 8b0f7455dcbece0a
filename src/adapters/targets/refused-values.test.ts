import { InvalidSyntaxError } from 'ldapts'
import { expect, test } from 'vitest'
import { checkAttributes } from '#directory/store/attributes.ts'
import { directoryLimits } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { asLdapFailure } from '#protocols/ldap/ldap-failure.ts'
import { DnPattern } from './ldap/ldap-config.ts'
import { unfit as unfitEntry } from './ldap/ldap-tree.ts'
import { unfit as unfitResource } from './scim/resource-mapping.ts'
import { refuse } from './sql/column.ts'
import { parseBodyTemplate, parseRequestTemplate, refusedValue } from './webhook/templates.ts'

const failureOf = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return error
  }
}
const one = (value: string) => new Map([['mail', [value]]])
const many = Array.from({ length: directoryLimits.valuesPerAttribute + 1 }, String)

test.each<[string, () => unknown, string, string]>([
  [
    'a directory with too many values',
    () => checkAttributes(new Map([['mail', many]])),
    'The attribute mail has too many values.',
    'emails has too many values.',
  ],
  [
    'a directory with a long value',
    () => checkAttributes(one('x'.repeat(directoryLimits.valueBytes + 1))),
    'A value of the attribute mail is too long.',
    'A value of emails is too long.',
  ],
  [
    'a directory with NUL',
    () => checkAttributes(one('\0')),
    'The value of mail holds a character that cannot be stored.',
    'The value of emails holds a character that cannot be stored.',
  ],
  [
    'the answer of a directory server',
    () => asLdapFailure(new InvalidSyntaxError('mail: value #0 invalid per syntax'), 'people', 'add'),
    'The value of "mail" cannot be stored.',
    'The value of emails cannot be stored.',
  ],
  [
    'an entry',
    () => unfitEntry('mail', 'is not base64'),
    'The value of "mail" cannot be stored.',
    'The value of emails cannot be stored.',
  ],
  [
    'the name of an entry',
    () => DnPattern.parse('uid=${mail}').render(() => undefined),
    'A value of "mail" is required.',
    'A value of emails is required.',
  ],
  [
    'a SCIM server behind',
    () => unfitResource('mail', 'it is empty'),
    '"mail" cannot be written to the server behind: it is empty.',
    'emails cannot be written to the server behind: it is empty.',
  ],
  ['a column', () => refuse('mail', 'must have a value'), '"mail" must have a value.', 'emails must have a value.'],
  [
    'a webhook',
    () => refusedValue('mail', 'is not a number'),
    'The value of mail cannot be stored: it is not a number.',
    'The value of emails cannot be stored: it is not a number.',
  ],
])('%s names the attribute, in the words of any layer', (_, work, publicText, asClientsKnow) => {
  const error = failureOf(work)
  if (!(error instanceof GatewayError)) throw new Error('nothing was refused')
  expect(error).toMatchObject({ code: 'BAD_REQUEST', attribute: 'mail', publicText })
  expect(error.textNaming('emails')).toBe(asClientsKnow)
})

test('several attributes of a webhook are named together; what is about the whole user names none', () => {
  const request = parseRequestTemplate('GET /{mail}-{phone}')
  expect(failureOf(() => request.render(() => 'x'.repeat(5000)))).toMatchObject({ attribute: 'mail, phone' })
  const body = parseBodyTemplate('{"a": "{mail}"}')
  expect(failureOf(() => body.render({ values: () => ['x'.repeat(5_000_000)] }))).toMatchObject({
    attribute: undefined,
    publicText: 'The value of the user cannot be stored: it is too large for one request.',
  })
})
