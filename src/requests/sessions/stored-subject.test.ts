import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { directoryLink } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { parseFilterTemplate } from '#identity/filter/filter-template.ts'
import type { Subject } from '#identity/subject.ts'
import type { JsonObject } from '#kernel/json.ts'
import { subject } from '#testing/login/subjects.ts'
import { storedSubject, storeSubject } from './stored-subject.ts'

const entry = { dn: Dn.parse('uid=ada,o=Tremolo'), attributes: Attributes.from({ entryUUID: ['1'] }) }
const linked = (filter: Filter): Subject => ({
  ...subject('uid=ada,o=Tremolo', { mail: ['ada@example.com'] }),
  otherNames: [Dn.parse('sub=ada,ou=outside,o=Tremolo')],
  link: directoryLink(entry, { filter, uidAttr: 'uid', added: Attributes.from({ locale: ['en', 'de'] }) }),
})
const kept = (one: Subject): JsonObject => JSON.parse(JSON.stringify(storeSubject(one)))

const plain: Filter = { kind: 'equal', attribute: 'uid', value: 'ada' }
const groups = Array.from(
  { length: 100 },
  (_, i) => `cn=group ${i} (all of them, everywhere),ou=departments,ou=groups,dc=example,dc=com`,
)
const long = parseFilterTemplate('(&(objectClass=person)(memberOf=${groups}))').bind(() => groups)
const deep = parseFilterTemplate(`${'(!'.repeat(49)}(mail=\${mail})${')'.repeat(49)}`).bind(() => ['a', 'b'])

describe('a subject survives storing', () => {
  test.each<[string, Filter | undefined]>([
    ['an ordinary filter', plain],
    ['a claim that has an address for a name', { ...plain, attribute: 'https://example.com/login' }],
    ['an attribute of SCIM', { ...plain, attribute: 'urn:ietf:params:scim:schemas:core:2.0:User:userName' }],
    ['a filter that values made longer than one that people write', long],
    ['a filter that values made deeper', deep],
  ])('found by %s', (_, filter) => {
    const one = linked(filter ?? plain)
    expect(filter).toBeDefined()
    expect(storedSubject.parse(kept(one))).toEqual(one)
  })

  test('without a link, and with one that has no attribute for the login', () => {
    const stranger = { ...subject('uid=ada,o=Tremolo'), otherNames: [] }
    expect(storedSubject.parse(kept(stranger))).toEqual(stranger)
    const link = directoryLink(entry, { filter: plain, uidAttr: undefined })
    expect(storedSubject.parse(kept({ ...stranger, link }))).toEqual({ ...stranger, link })
  })
})

test.each([{ link: 1 }, { link: {} }, { link: { dn: 'o=x', filter: '(uid=ada)', uidAttr: 'uid', added: [] } }])(
  'a subject with an invalid link is invalid: %j',
  (damage) => expect(storedSubject.safeParse({ ...kept(linked(plain)), ...damage }).success).toBe(false),
)
