import { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { expect } from 'vitest'
import type { PortalOrg, PortalUrl, PortalWorkflow } from '#features/portal/access/portal.ts'
import main from '#features/portal/main/main.ts'
import { Attributes } from '#identity/attributes.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { issuerIdentity } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import { subject } from '#testing/login/subjects.ts'
import { type FakeHostOptions, fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import { fakePortal, MemoryPortal, type PortalParts } from '#testing/modules/fake-portal.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { MemoryRuns } from '#testing/workflows/memory-runs.ts'

export const mainParams: ParamValues = {
  displayNameAttribute: 'displayName',
  'frontPage.title': 'Portal',
  'frontPage.text': 'Welcome',
  canEditUser: 'true',
  workflowName: 'save',
  uidAttributeName: 'uid',
  showPortalOrgs: 'true',
  logoutURL: '/logout',
  warnMinutesLeft: '5',
  attributeNames: ['uid', 'displayName', 'mail', 'team'],
  'uid.displayName': 'Login',
  'uid.readOnly': 'true',
  'displayName.displayName': 'Name',
  'displayName.required': 'true',
  'mail.displayName': 'Mail',
  'mail.regEx': '[^@]+@example\\.com',
  'mail.regExFailedMsg': 'Mail must be one of ours',
  'team.displayName': 'Team',
  'team.type': 'list',
  'team.values': ['Red=red', 'Blue=blue'],
  approvalAttributeNames: ['mail'],
  'approvals.mail': 'Mail',
  approvalRequestAttributeNames: ['group'],
  'approvals.group': 'Group',
}

/** A rule that members of this group pass. */
export const onlyFor = (group: string): Rule => {
  const constraint = `(groups=${group})`
  return { scope: 'filter', constraint, filter: parseFilter(constraint) }
}

export const org = (id: string, more: Partial<PortalOrg> = {}): PortalOrg => ({
  id,
  name: `Org ${id}`,
  description: '',
  parent: undefined,
  showInPortal: true,
  showInRequest: true,
  showInReports: true,
  rules: [onlyFor('people')],
  ...more,
})

export const link = (name: string, more: Partial<PortalUrl> = {}): PortalUrl => ({
  name,
  label: `Link ${name}`,
  url: `https://${name}.example.com/`,
  org: undefined,
  icon: undefined,
  rules: [onlyFor('people')],
  ...more,
})

export const workflow = (name: string, more: Partial<PortalWorkflow> = {}): PortalWorkflow => ({
  name,
  label: `Workflow ${name}`,
  description: '',
  org: 'root',
  inList: true,
  approverGroups: [],
  commentRequired: false,
  dynamic: undefined,
  ...more,
})

export const person = (uid: string, more: Readonly<Record<string, readonly string[]>> = {}): InsertEntry => ({
  dn: Dn.of(['uid', uid], ['ou', 'people'], ['o', 'x']),
  attributes: Attributes.from({ objectClass: ['inetOrgPerson'], uid: [uid], displayName: [`${uid} Doe`], ...more }),
})

export const someone = (uid: string, groups: readonly string[] = ['people']): Subject =>
  subject(`uid=${uid},ou=people,o=x`, { uid: [uid], groups })

export const ann = someone('ann')

/** A caller of another issuer, without a directory entry, whose token has this login. */
export const outsider = (uid: string): Subject => ({
  ...subject(`uid=${uid},ou=outside,o=x`, { uid: [uid], groups: ['people'] }),
  identity: issuerIdentity('https://idp.example.com', uid),
})

export interface MainOptions extends Omit<FakeHostOptions, 'portal'> {
  readonly params?: ParamValues
  readonly portal?: Partial<PortalParts>
  readonly mount?: string
  /** The Accept-Language header of every request. */
  readonly language?: string
  /** The effect of the profile's workflow. */
  readonly run?: (call: WorkflowCall) => Promise<WorkflowResult>
}

/** The filter with all its parts in memory. */
export async function openMain(options: MainOptions = {}) {
  const issues = noIssues()
  const prepared = main.prepare(fakeParams({ ...mainParams, ...options.params }), issues, fakeParseContext())
  expect(issueTexts(issues.list)).toEqual([])
  const calls: WorkflowCall[] = []
  const runs = new MemoryRuns()
  runs.run = async (call) => {
    calls.push(call)
    return (await options.run?.(call)) ?? { id: 'run', status: 'completed', changes: 1 }
  }
  const memory = new MemoryPortal()
  const portal = fakePortal({ memory, orgs: [org('root')], workflows: [workflow('join')], ...options.portal })
  const host = fakeModuleHost({
    runs,
    entries: [person('ann', { mail: ['ann@example.com'] }), person('bob')],
    authorize: ({ attributes }, rules) => {
      const groups = attributes.values('groups')
      return {
        allowed: rules.some(({ constraint }) => groups.some((g) => constraint === `(groups=${g})`)),
        verdicts: [],
      }
    },
    ...options,
    portal,
  })
  const filter = await prepared.create(host)
  const { mount = '/portal/main' } = options
  const answer = async (
    method: string,
    path: string,
    body?: unknown,
    who: Subject = ann,
    type = 'application/json',
    signal?: AbortSignal,
  ) => {
    const url = `https://gw.example.com${mount}${path}`
    const request = fakeRequest({
      method,
      url,
      headers: {
        ...(options.language === undefined ? {} : { 'accept-language': options.language }),
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return await filter.handle(
      {
        request: signal === undefined ? request : { ...request, signal },
        application: 'portal',
        mount,
        pathInfo: request.path.slice(mount.length),
        subject: who,
      },
      async () => {
        throw new Error('there is nothing behind this filter')
      },
    )
  }
  const send = async (...call: Parameters<typeof answer>) => {
    const response = await answer(...call)
    const text = response.body instanceof Readable ? await textOf(response.body) : String(response.body ?? '')
    const isJson = response.headers?.['content-type']?.includes('json') ?? true
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' || !isJson ? undefined : JSON.parse(text),
    }
  }
  return { send, answer, filter, host, runs, memory, calls, prepared }
}
