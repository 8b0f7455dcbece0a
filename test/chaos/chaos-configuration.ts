import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ChaosAddresses {
  readonly targetUrl: string
  readonly smtpPort: number
  /** The issuer of the callers' tokens: one for all replicas, so that a call may be repeated at any of them. */
  readonly issuer: string
}

export const callPath = '/call-workflow'
export const approvalPath = '/approvals'
export const callerAudience = 'gatehouse'
export const approvers = ['alice', 'bob'] as const

/** The called workflows: asynchronous, with an approval, nested with a mail, and one that can never succeed. */
export const workflows = { plain: 'plain', approved: 'approved', nested: 'nested', approver: 'approver' } as const

/** The plug-in's code: it passes the step's key on, and marks every failure as temporary or not. */
const plugin = `
let url
function init(config) { url = config.url[0] }
async function ask(method, user, key, attributes) {
  let response
  try {
    response = await fetch(url + '/users/' + encodeURIComponent(user), {
      method,
      headers: { 'idempotency-key': key, 'content-type': 'application/json' },
      ...(attributes === undefined ? {} : { body: JSON.stringify(attributes) }),
      signal: AbortSignal.timeout(8000),
    })
  } catch (error) {
    throw Object.assign(new Error('no answer: ' + error.message), { code: 'unreachable' })
  }
  if (response.status === 404) return undefined
  if (response.status === 429 || response.status >= 500) {
    throw Object.assign(new Error('status ' + response.status), { code: 'unreachable' })
  }
  if (!response.ok) throw new Error('status ' + response.status)
  return response.json()
}
async function findUser(userID, attributes, request) {
  const found = await ask('GET', userID, request.idempotencyKey)
  return found === undefined ? null : { userID, attributes: found.attributes, groups: [] }
}
const write = (user, request) => ask('POST', user.userID, request.idempotencyKey, user.attributes)
async function createUser(user, attributes, request) { await write(user, request) }
async function syncUser(user, addOnly, attributes, request) { await write(user, request) }
async function deleteUser() { throw new Error('nobody is deleted here') }
`

const provision = (attributes: string, indent: string): string =>
  `${indent}- {taskType: provision, sync: true, target: crm, attributes: [${attributes}]}`
const stage = (name: string, indent: string): string =>
  `${indent}- {taskType: addAttribute, name: ${name}, value: $ticket$}`
const mail = (indent: string): string =>
  `${indent}- {taskType: notifyUser, subject: done $ticket$, msg: done $ticket$, mailAttrib: mail}`

/** Writes the configuration of all gateways and returns its folder. */
export function writeChaosConfiguration(folder: string, addresses: ChaosAddresses): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'crm.mjs'), plugin)
  const documents = [
    authentication(addresses.issuer),
    ...systems(addresses),
    ...Object.entries(definitions()).map(workflow),
    application(),
  ]
  writeFileSync(join(folder, 'chaos.yaml'), documents.join('---\n'))
  return folder
}

const authentication = (issuer: string): string => `apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata: {name: jwt}
spec: {className: auth.OAuth2JWT, uri: /auth/jwt, init: {}, secretParams: []}
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata: {name: api}
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: jwt
      required: required
      params:
        issuer: "${issuer}"
        audience: ${callerAudience}
        fromWellKnown: "true"
        linkToDirectory: "false"
        noMatchOU: api
        uidAttr: sub
        lookupFilter: ""
        defaultObjectClass: inetOrgPerson
        realm: gatehouse
        scope: call
      secretParams: []
`

const systems = ({ targetUrl, smtpPort }: ChaosAddresses): string[] => [
  `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: crm}
spec:
  className: targets.Plugin
  params: {module: crm.mjs, url: "${targetUrl}", timeoutSeconds: 10}
`,
  `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: people}
spec: {className: targets.Database, params: []}
`,
  `apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: {name: default}
spec:
  className: notifiers.Smtp
  params: {host: 127.0.0.1, port: ${smtpPort}, security: none, from: gatehouse@example.com, sendTimeoutSeconds: 8}
`,
]

function definitions(): Record<string, string> {
  const both = 'ticket, stage1, stage2'
  return {
    [workflows.plain]: [
      stage('stage1', '    '),
      provision('ticket, stage1', '    '),
      stage('stage2', '    '),
      provision(both, '    '),
    ].join('\n'),
    [workflows.nested]: [`    - {taskType: callWorkflow, name: ${workflows.plain}}`, mail('    ')].join('\n'),
    [workflows.approved]: [
      stage('stage1', '    '),
      provision('ticket, stage1', '    '),
      `    - taskType: approval
      label: $ticket$
      emailTemplate: please decide about $ticket$
      mailAttr: mail
      failureEmailSubject: denied $ticket$
      failureEmailMsg: denied $ticket$
      approvers: [${approvers.map((login) => `{scope: filter, constraint: "(uid=${login})"}`).join(', ')}]
      onSuccess:`,
      stage('stage2', '        '),
      provision(both, '        '),
      mail('        '),
      '      onFailure:',
      stage('denied', '        '),
      provision('ticket, stage1, denied', '        '),
    ].join('\n'),
    [workflows.approver]: '    - {taskType: provision, sync: true, target: people, attributes: [uid, mail]}',
  }
}

const workflow = ([name, tasks]: [string, string]): string => `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: ${name}}
spec:
  label: ${name}
  description: ${name}
  tasks:
${tasks}
`

const application = (): string => `apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: {name: chaos}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: {cookiesEnabled: false}
  urls:
    - hosts: ["127.0.0.1"]
      uri: ${callPath}
      authChain: api
      azRules: [{scope: dn, constraint: "sub=chaos,ou=api,o=Tremolo"}]
      filterChain:
        - className: filters.CallWorkflow
          params:
            allowedWorkflow: [${Object.values(workflows).join(', ')}]
            subject: any
    - hosts: ["127.0.0.1"]
      uri: ${approvalPath}
      azRules: [{scope: dn, constraint: o=Tremolo}]
      filterChain:
        - className: filters.ApprovalLink
          params: {withoutLogin: "true", url: "#[GATEHOUSE_URL]${approvalPath}"}
`
