import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { type MailServer, mailServer } from '#testing/servers/mail-server.ts'
import {
  application,
  developmentLogin,
  peopleInDatabase,
  registrationUrl,
  tokenMechanism,
} from '#testing/stories/story-documents.ts'

/** The gateway's keys, which commands that write to its audit need, too. */
export const registrationKeys = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 5).toString('base64') }

/** A form with everything, one that confirms mail addresses, and one for logged-in users. */
const configuration = (mailPort: number): string => `
apiVersion: openunison.tremolo.io/v1
kind: Notifier
metadata: { name: mail }
spec:
  className: notifiers.Smtp
  params:
    - { name: host, value: 127.0.0.1 }
    - { name: port, value: "${mailPort}" }
    - { name: security, value: none }
    - { name: from, value: Gatehouse <gatehouse@example.com> }
---
${peopleInDatabase}
---
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: { name: accounts }
spec: { className: directory.Target, suffix: "ou=accounts,o=Tremolo", params: { target: people } }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: join }
spec:
  tasks:
    - { taskType: provision, target: people, sync: true, attributes: [uid, mail, team] }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ask-first }
spec:
  tasks:
    - taskType: approval
      label: Join \${TREMOLO_USER_ID}
      emailTemplate: Somebody asks to join.
      mailAttr: mail
      failureEmailSubject: Denied
      failureEmailMsg: Sorry.
      approvers: [{ scope: filter, constraint: (uid=boss) }]
      onSuccess:
        - { taskType: provision, target: people, sync: true, attributes: [uid, mail, team] }
---
${tokenMechanism}
---
${developmentLogin}
---
${form('open', { workflowName: 'join' })}
---
${form('asked', { workflowName: 'ask-first' })}
---
${form('confirmed', {
  workflowName: 'join',
  preSetPassword: 'true',
  verifyEmail: 'true',
  publicURL: '#[GATEHOUSE_URL]/confirmed/register',
  invitationURL: '#[GATEHOUSE_URL]/page',
})}
---
${form(
  'inviting',
  {
    workflowName: 'join',
    requireInvitation: 'true',
    invitationURL: '#[GATEHOUSE_URL]/page',
    inviterRule: ['filter;(sub=boss)'],
  },
  { authChain: 'development' },
)}
`

/** With fields of every kind, and no limits. */
function form(name: string, params: Readonly<Record<string, string | readonly string[]>>, special?: object): string {
  const fields = {
    attributeNames: ['uid', 'mail', 'team'],
    'uid.readOnly': 'false',
    'uid.required': 'true',
    'uid.regEx': '[a-z0-9-]+',
    'uid.regExFailedMsg': 'Logins are made of letters and digits',
    'uid.minChars': '2',
    'uid.maxChars': '40',
    'uid.unique': 'true',
    'mail.required': 'false',
    'mail.unique': 'true',
    'team.displayName': 'Team',
    'team.type': 'list',
    'team.required': 'false',
    'team.values': ['Blue=blue', 'Red=red'],
    submitsPerMinute: '0',
    submitsPerValuePerHour: '0',
    readsPerMinute: '0',
  }
  return application(name, [registrationUrl(`/${name}/register`, { ...fields, ...params }, special)])
}

export interface RegistrationStory {
  readonly config: string
  readonly mails: MailServer
  start(options?: { dataFolder?: string; database?: string }): Promise<RegistrationGateway>
}

export interface RegistrationGateway {
  readonly gateway: GatewayProcess
  get(path: string, token?: string): Promise<Response>
  /** A JSON body, unless it is a text. */
  post(path: string, body: unknown, token?: string): Promise<Response>
}

/** The answer, after a comparison with the document of the form's API. */
async function described(method: string, path: string, response: Response): Promise<Response> {
  const mount = `/${path.split('/')[1]}`
  const type = response.headers.get('content-type')
  expectDescribed({ method, path, status: response.status, type, text: await response.clone().text() }, [mount])
  return response
}

export async function registrationStory(): Promise<RegistrationStory> {
  const mails = await mailServer()
  onTestFinished(() => mails.close())
  const config = temporaryFolder()
  writeFileSync(join(config, 'registration.yaml'), configuration(mails.port))
  return {
    config,
    mails,
    start: async ({ dataFolder = temporaryFolder(), database } = {}) => {
      const args = database === undefined ? [] : ['--database', database]
      const gateway = await startGatewayProcess({ config, dataFolder, args, environment: registrationKeys })
      onTestFinished(async () => void (await gateway.stop()))
      const bearer = (token: string | undefined): Record<string, string> =>
        token === undefined ? {} : { authorization: `Bearer ${token}` }
      return {
        gateway,
        get: async (path, token) =>
          described('GET', path, await fetch(`${gateway.url}${path}`, { headers: bearer(token), redirect: 'manual' })),
        post: async (path, body, token) =>
          described(
            'POST',
            path,
            await fetch(`${gateway.url}${path}`, {
              method: 'POST',
              headers: { 'content-type': 'application/json', ...bearer(token) },
              body: typeof body === 'string' ? body : JSON.stringify(body),
            }),
          ),
      }
    },
  }
}
