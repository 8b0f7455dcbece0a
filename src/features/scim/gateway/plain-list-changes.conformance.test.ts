import fc from 'fast-check'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { targetSchema, targetSetup } from '#cli/init/target.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Target } from '#sdk/target/target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { openTarget, runOn } from '#testing/databases/sql-schema.ts'
import { newBranch, openLdap } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { openGatewayOn } from '#testing/scim/gateway-on-target.ts'
import { builtInParams } from '#testing/scim/scim-stack.ts'
import { crmSecrets, openWebhook, startCrmApplication } from '#testing/targets/crm-application.ts'

interface Element {
  readonly type?: string
  readonly primary?: boolean
  readonly value?: string
  readonly streetAddress?: string
  readonly locality?: string
}
type Lists = Readonly<Record<string, readonly Element[]>>

interface Change {
  readonly list: string
  readonly operation: object
  readonly apply: (elements: readonly Element[]) => readonly Element[]
}

const types = {
  emails: ['work', 'home', 'other'],
  phoneNumbers: ['work', 'mobile', 'home', 'fax'],
  addresses: ['work'],
}
const values = { emails: ['a@x.org', 'b@x.org', 'c@x.org'], phoneNumbers: ['+1', '+2', '+3'] }
const names = Object.keys(types) as (keyof typeof types)[]

/** Elements of the first type come without it too, and with either mark or none. */
const elements = (list: keyof typeof types): fc.Arbitrary<Element> => {
  const common = { type: fc.constantFrom(...types[list]), primary: fc.boolean() }
  if (list !== 'addresses') {
    return fc.record({ ...common, value: fc.constantFrom(...values[list]) }, { requiredKeys: ['value'] })
  }
  const [streetAddress, locality] = [fc.constantFrom('1 Main St', '2 High St'), fc.constantFrom('Oslo', 'Bergen')]
  return fc.record({ ...common, streetAddress, locality }, { requiredKeys: ['locality'] })
}
const someOf = (list: keyof typeof types) =>
  fc.array(elements(list), { maxLength: list === 'addresses' ? 1 : 3 }).map((some) => some as readonly Element[])

/** What an element is, whatever its mark. */
const contentOf = ({ type = 'work', value = '', streetAddress = '', locality = '' }: Element): string =>
  [type, value, streetAddress, locality].join(' ')
const contents = (lists: Lists): object =>
  Object.fromEntries(names.map((name) => [name, [...new Set((lists[name] ?? []).map(contentOf))].sort()]))

const changesOf = (list: keyof typeof types): fc.Arbitrary<Change> => {
  const change = (operation: object, apply: Change['apply']): Change => ({ list, operation, apply })
  const type = fc.constantFrom(...types[list])
  const whole = [
    someOf(list).map((some) => change({ op: 'replace', path: list, value: some }, () => some)),
    fc.constant(change({ op: 'remove', path: list }, () => [])),
    type.map((one) =>
      change({ op: 'remove', path: `${list}[type eq "${one}"]` }, (all) => all.filter((each) => each.type !== one)),
    ),
  ]
  if (list === 'addresses') return fc.oneof(...whole)
  const value = fc.constantFrom(...values[list])
  return fc.oneof(
    ...whole,
    fc.tuple(type, value).map(([one, text]) =>
      change({ op: 'replace', path: `${list}[type eq "${one}"].value`, value: text }, (all) => {
        const changed = all.map((each) => (each.type === one ? { ...each, value: text } : each))
        return all.some((each) => each.type === one) ? changed : [...all, { type: one, value: text }]
      }),
    ),
    fc.tuple(type, value).map(([one, text]) => {
      const element = { type: one, value: text }
      return change({ op: 'add', path: list, value: [element] }, (all) => [...all, element])
    }),
    value.map((text) =>
      change({ op: 'remove', path: `${list}[value eq "${text}"]` }, (all) => all.filter((each) => each.value !== text)),
    ),
  )
}

const profile = fc.record(
  { emails: someOf('emails'), phoneNumbers: someOf('phoneNumbers'), addresses: someOf('addresses') },
  { requiredKeys: [] },
) as fc.Arbitrary<Lists>
const steps = fc.array(fc.oneof(profile, fc.oneof(...names.map(changesOf))), { minLength: 1, maxLength: 8 })

const { mapping } = targetSetup('sql', { hasCertificate: false, hasSecret: false })

/** The parameters of the target that `init` writes. */
function targetParams(kind: 'sql' | 'webhook'): ParamValues {
  const { yaml = '' } = targetSetup(kind, { hasCertificate: false, hasSecret: false })
  const [document] = parseAllDocuments(yaml).map((one) => one.toJS() as { spec: { params: ParamValues } })
  return document?.spec.params ?? {}
}

/** The same values, and another of them is the primary one: their order is all that changes. */
const swaps: Lists[] = ['a@x.org', 'b@x.org'].map((first) => ({
  emails: ['a@x.org', 'b@x.org'].map((value) => ({ value, primary: value === first })),
}))

const refusals = /can have one value only|one can be stored|cannot be primary|only one value can be primary/

function suite(openSystem: () => Promise<Target>, numRuns = 30): void {
  test('each change does what it says, and touches nothing else', async () => {
    const target = await openSystem()
    onTestFinished(async () => target.close?.())
    const { send } = await openGatewayOn(target, { ...builtInParams, ...mapping })
    let users = 0
    await fc.assert(
      fc.asyncProperty(profile, steps, async (first, all) => {
        const userName = `user${++users}`
        const made = await send('POST', '/Users', { userName, active: true })
        const address = `/Users/${String(made.body['id'])}`
        let now: Lists = {}
        for (const [i, step] of [first, ...all].entries()) {
          // Another change, so that the whole of the request is written.
          const title = `Title ${i}`
          const isPut = !('operation' in step)
          const operations = isPut ? [] : [step.operation, { op: 'replace', path: 'title', value: title }]
          const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
          const body = isPut ? { userName, active: true, title, ...step } : { schemas, Operations: operations }
          const answer = await send(isPut ? 'PUT' : 'PATCH', address, body as JsonObject)
          const shown = (await send('GET', address)).body as unknown as Lists
          if (answer.status === 400) expect(answer.body['detail']).toMatch(refusals)
          else {
            expect([answer.status, answer.body['detail'], answer.body['title']]).toEqual([200, undefined, title])
            const list = isPut ? '' : (step as Change).list
            now = isPut ? (step as Lists) : { ...now, [list]: (step as Change).apply(now[list] ?? []) }
          }
          expect(contents(shown)).toEqual(contents(now))
          now = shown
          for (const name of names) {
            const primary = (now[name] ?? []).map((element) => element.primary === true)
            expect(primary).toEqual(primary.map((_, at) => at === 0))
          }
        }
      }),
      { numRuns, examples: [[{}, swaps]] },
    )
  })
}

onEachEmptyDatabase('random changes of lists in the tables of a new gateway', (freshUrl) =>
  suite(async () => {
    const url = await freshUrl()
    const statements = targetSchema(url.startsWith('sqlite:') ? 'sqlite' : 'postgres').replaceAll(/^--.*$/gm, '')
    await runOn(url, ...statements.split(';').filter((text) => text.trim() !== ''))
    return openTarget(url, targetParams('sql'))
  }),
)

describe('random changes of lists in an application with an API', () =>
  suite(async () => {
    const { url, stop } = await startCrmApplication()
    onTestFinished(stop)
    return openWebhook({ ...targetParams('webhook'), ...crmSecrets, url })
  }, 10))

describe.skipIf(inject('slapd') === '')('random changes of lists in an LDAP server', () =>
  suite(async () => {
    const slapd = await sharedSlapd()
    return openLdap(slapd, await newBranch(slapd), {
      objectClass: ['inetOrgPerson'],
      'default.cn': '${uid}',
      'default.sn': '${uid}',
      'attribute.userName': 'uid',
      'attribute.active': 'employeeType',
      'attribute.homeMail': 'labeledURI',
      'attribute.otherMail': 'carLicense',
      'attribute.office.streetAddress': 'street',
      'attribute.office.locality': 'l',
    })
  }),
)
