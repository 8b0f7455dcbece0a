import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { type DemoLogin, PortalPerson } from '#testing/stories/portal-story.ts'

/**
 * The fields of each answer: those of the specification (Registration, sections 2.1 and 4.1) and of OpenUnison's Main
 * and Token APIs. A `?` marks an optional field; `any` is for values of every type.
 */
const tables: Readonly<Record<string, string>> = {
  RegisterConfig: `
| frontPage | object |
| frontPage.title | string |
| frontPage.text | string |
| homeURL | string |
| logoutURL | string |
| attributes | array of RegisterAttribute |
| attributeNameList | array of string |
| requireReason | boolean |
| preSetPassword | boolean |
| requireReCaptcha | boolean |
| requireTermsAndConditions | boolean |
| reasonIsList | boolean |
| reasons | array of string |
| submitButtonText | string |
| submittedText | string |
| enableThirdColumn | boolean |
| themePrimaryMain | string |
| themePrimaryDark | string |
| themePrimaryLight | string |
| themeSecondaryMain | string |
| themeSecondaryDark | string |
| themeSecondaryLight | string |
| headerTitle | string |
| errorColor | string |`,
  RegisterAttribute: `
| name | string |
| displayName | string |
| readOnly | boolean |
| required | boolean |
| regEx? | string |
| minChars? | integer |
| maxChars? | integer |
| unique | boolean |
| type | string |
| values | array of ListItem |
| show | boolean |`,
  ListItem: `
| name | string |
| value | string |
| num | integer |`,
  SubmittedResponse: `
| addNewUsers | boolean |
| workflowId | string |`,
  ErrorResponse: `
| errors | array of string |`,
  MainConfig: `
| displayNameAttribute | string |
| uidAttributeName | string |
| frontPage.title | string |
| frontPage.text | string |
| canEditUser | boolean |
| showPortalOrgs | boolean |
| logoutURL | string |
| enableApprovals | boolean |
| attributes | map of ScaleAttribute |
| roleAttribute? | string |
| warnMinutesLeft | integer |
| requireReasons | boolean |
| reasonIsList | boolean |
| reasons | array of string |
| startPage | string |
| hidePages | array of string |
| themePrimaryMain | string |
| themePrimaryDark | string |
| themePrimaryLight | string |
| themeSecondaryMain | string |
| themeSecondaryDark | string |
| themeSecondaryLight | string |
| headerTitle | string |
| errorColor | string |
| groupsAreJson | boolean |
| groupsFields | array of string |`,
  ScaleAttribute: `
| name | string |
| displayName | string |
| readOnly | boolean |
| required | boolean |
| regEx? | string |
| regExFailedMsg? | string |
| minChars | integer |
| maxChars | integer |
| unique | boolean |
| type? | string |
| values | array of ListItem |
| show | boolean |`,
  UserData: `
| uid | string |
| dn | string |
| attributes | array of AttributeValues |
| groups | array of string |`,
  AttributeValues: `
| name | string |
| values | array of string |
| dataType | string |`,
  Organization: `
| id | string |
| name | string |
| description | string |
| showInPortal | boolean |
| showInRequest | boolean |
| showInReports | boolean |
| subOrgs | array of Organization |`,
  WorkflowListItem: `
| uuid | string |
| name | string |
| label | string |
| description | string |
| encryptedParams? | string |
| filterAnnotations | map of string |`,
  DelegationRights: `
| canDelegate | boolean |
| canPreApprove | boolean |
| uuid? | string |`,
  ApprovalList: `
| approvals | array of ApprovalSummary |`,
  ApprovalSummary: `
| workflow | string |
| approval | string |
| label | string |
| user | string |
| wfStart | integer |
| approvalStart | integer |
| wfName | string |
| wfDescription | string |
| wfLabel | string |
| reason | string |
| displayName | string |`,
  ApprovalDetails: `
| workflow | string |
| approval | string |
| label | string |
| user | string |
| wfStart | integer |
| approvalStart | integer |
| wfName | string |
| wfDescription | string |
| wfLabel | string |
| reason | string |
| userObj | object |
| userObj.userID | string |
| userObj.groups | array of string |
| userObj.requestReason | string |
| userObj.attribs | map of AttributeValues |
| requestAttributes | map of string |`,
  ReportList: `
| reports | array of ReportInfo |`,
  ReportInfo: `
| name | string |
| description | string |
| orgID | string |
| parameters | array of string |`,
  ReportResult: `
| name | string |
| description | string |
| headerFields | array of string |
| dataFields | array of string |
| grouping | array of ReportGroup |`,
  ReportGroup: `
| header | map of string |
| data | array of StringMap |`,
  ReportReference: `
| reportid | string |`,
  PortalLink: `
| name | string |
| label | string |
| org | string |
| url | string |
| icon | string |`,
  SessionCheck: `
| minsLeft | integer |`,
  TokenConfig: `
| frontPage.title | string |
| frontPage.text | string |
| homeURL | string |
| logoutURL | string |
| qrCodeAttribute? | string |
| warnMinutesLeft | integer |
| themePrimaryMain | string |
| themePrimaryDark | string |
| themePrimaryLight | string |
| themeSecondaryMain | string |
| themeSecondaryDark | string |
| themeSecondaryLight | string |
| headerTitle | string |
| errorColor | string |`,
  TokenUser: `
| displayName | string |
| token | map of string |
| token.id_token | string |
| expires | string |
| claims | map of any |
| claims.sub | string |
| claims.exp | integer |
| state.idToken | string |
| state.refreshToken | string |
| state.renewable | boolean |`,
}

/** Fields that OpenUnison sent or stored beside the others, and that no client gets here. */
const neverSent =
  /"(?:jitUserWorkflow|workflowName|editJavaScriptFunction|jsUris|password|userPassword|rcSecret|regex|pattern)":/

interface Field {
  readonly path: readonly string[]
  readonly optional: boolean
  readonly type: string
}

const fieldsOf = (shape: string): Field[] =>
  Array.from((tables[shape] ?? '').matchAll(/^\| ([\w.]+)(\??) \| (.+) \|$/gm), ([, path = '', mark, type = '']) => ({
    path: path.split('.'),
    optional: mark === '?',
    type,
  }))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The paths of values of another type. */
function differences(value: unknown, type: string, at = ''): string[] {
  const [, container, of = ''] = /^(array|map) of (.+)$/.exec(type) ?? []
  if (container === 'array') {
    if (!Array.isArray(value)) return [`${at}: ${type}`]
    return value.flatMap((item, i) => differences(item, of, `${at}[${i}]`))
  }
  if (container === 'map') {
    if (!isObject(value)) return [`${at}: ${type}`]
    return Object.entries(value).flatMap(([name, item]) => differences(item, of, `${at}.${name}`))
  }
  if (type === 'StringMap') return differences(value, 'map of string', at)
  if (tables[type] !== undefined) {
    if (!isObject(value)) return [`${at}: ${type}`]
    return fieldsOf(type).flatMap(({ path, optional, type: inner }) => {
      const found = path.reduce<unknown>((whole, name) => (isObject(whole) ? whole[name] : undefined), value)
      return found === undefined && optional ? [] : differences(found, inner, `${at}.${path.join('.')}`)
    })
  }
  if (type === 'any') return value === undefined ? [`${at}: absent`] : []
  const holds =
    type === 'integer' ? Number.isInteger(value) : type === 'object' ? isObject(value) : typeof value === type
  return holds ? [] : [`${at}: ${type}`]
}

test('the table finds missing fields, and fields of another type', () => {
  expect(fieldsOf('MainConfig')).toHaveLength(26)
  expect(differences({ name: 'a', value: 'b', num: 0 }, 'ListItem')).toEqual([])
  expect(differences({ name: 'a', num: '0' }, 'ListItem')).toEqual(['.value: string', '.num: integer'])
  expect(differences({ reports: [{ name: 'a' }] }, 'ReportList')).toHaveLength(3)
  for (const shape of Object.keys(tables)) expect([shape, fieldsOf(shape).length > 0]).toEqual([shape, true])
})

describe('the portal', () => {
  let gateway: GatewayProcess
  const people = new Map<DemoLogin, PortalPerson>()
  let approval = ''
  const person = (login: DemoLogin): PortalPerson => {
    const found = people.get(login)
    if (found === undefined) throw new Error(`${login} is not logged in`)
    return found
  }

  beforeAll(async () => {
    gateway = await startGatewayProcess({ config: 'examples/quickstart' })
    for (const login of ['ada', 'grace', 'alan'] as const) people.set(login, await PortalPerson.logIn(gateway, login))
    const line = { uuid: 'fields', name: 'vault-access', reason: 'to see the fields' }
    expect((await person('ada').send('PUT', '/main/workflows', [line])).json).toEqual({ fields: 'success' })
    await until(async () => {
      approval = (await person('grace').get('/main/approvals')).json.approvals[0]?.approval ?? ''
      return approval !== ''
    }, 20_000)
  }, 120_000)
  afterAll(async () => void (await gateway?.stop()))

  test.each<[DemoLogin, string, string]>([
    ['ada', '/register/config', 'RegisterConfig'],
    ['ada', '/register/values?name=team', 'array of ListItem'],
    ['ada', '/register/values', 'array of ListItem'],
    ['ada', '/main/config', 'MainConfig'],
    ['alan', '/main/config', 'MainConfig'],
    ['ada', '/main/user', 'UserData'],
    ['ada', '/main/orgs', 'Organization'],
    ['ada', '/main/workflows/org/example', 'array of WorkflowListItem'],
    ['ada', '/main/workflows/candelegate?workflowName=vault-access&uuid=x', 'DelegationRights'],
    ['grace', '/main/approvals', 'ApprovalList'],
    ['grace', '/main/approvals/APPROVAL', 'ApprovalDetails'],
    ['ada', '/main/reports/org/example', 'ReportList'],
    ['ada', '/main/reports/My%20requests', 'ReportResult'],
    ['ada', '/main/reports/My%20requests?excel=true', 'ReportReference'],
    ['ada', '/main/urls', 'array of PortalLink'],
    ['alan', '/main/urls/org/example', 'array of PortalLink'],
    ['ada', '/sessioncheck', 'SessionCheck'],
    ['ada', '/token/config', 'TokenConfig'],
    ['ada', '/token/user', 'TokenUser'],
  ])('%s reads %s: every field of %s', async (login, path, shape) => {
    const answer = await person(login).get(path.replace('APPROVAL', approval))
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(answer.headers.get('cache-control')).toContain('no-store')
    expect(differences(answer.json, shape)).toEqual([])
    if (shape.startsWith('array of ')) expect(answer.json).not.toHaveLength(0)
    expect(answer.text).not.toMatch(neverSent)
  })

  test('writes are answered with every field, and rejections too', async () => {
    const attributes = { userName: 'joan', mail: 'joan@example.com', givenName: 'Joan', sn: 'Clarke' }
    const submitted = await person('ada').send('POST', '/register/submit', { attributes, reason: 'new here' })
    expect([submitted.status, differences(submitted.json, 'SubmittedResponse')]).toEqual([200, []])
    const refused = await person('ada').send('POST', '/register/submit', { attributes: {} })
    expect([refused.status, differences(refused.json, 'ErrorResponse')]).toEqual([500, []])
    const saved = await person('ada').send('PUT', '/main/user', { displayName: { name: 'displayName', value: 'Ada' } })
    expect([saved.status, differences(saved.json, 'UserData')]).toEqual([200, []])
    const invalid = await person('ada').send('PUT', '/main/user', { displayName: { value: '' } })
    expect([invalid.status, differences(invalid.json, 'ErrorResponse')]).toEqual([500, []])
    const decided = await person('grace').send('PUT', `/main/approvals/${approval}`, { approved: true, reason: 'yes' })
    expect([decided.status, decided.text]).toEqual([200, ''])
    for (const path of ['/main/nothing', '/main/reports/nothing', '/token/nothing', '/register/nothing']) {
      const { status, json } = await person('ada').get(path)
      expect([path, status, differences(json, 'ErrorResponse')]).toEqual([path, 404, []])
    }
  })

  test('without a session there is nothing', async () => {
    for (const path of ['/main/config', '/main/user', '/main/urls', '/token/config', '/token/user', '/sessioncheck']) {
      const response = await fetch(`${gateway.url}${path}`, { headers: { accept: 'application/json' } })
      expect([path, response.status]).toEqual([path, 401])
      await response.arrayBuffer()
    }
  })
})
