import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { application, registrationUrl } from '#testing/stories/story-documents.ts'
import type { MeasuredGateway } from './gateway.ts'
import type { RequestMaker } from './requests.ts'

const path = '/register'
let registered = 0

/** A form with a unique login, a workflow that creates an account in the database, and the quickstart's issuer. */
export function writeRegistration(folder: string, quickstart: string): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'authentication.yaml'), quickstart)
  writeFileSync(join(folder, 'registration.yaml'), configuration)
  return folder
}

export const registrationRequests =
  ({ port }: MeasuredGateway): RequestMaker =>
  () => {
    const login = `person${registered++}`
    const body = JSON.stringify({ attributes: { uid: login, mail: `${login}@example.com` } })
    const head = `POST ${path}/submit HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n`
    return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }

const configuration = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: people}
spec: {className: targets.Database, params: []}
---
apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata: {name: accounts}
spec: {className: directory.Target, suffix: "ou=accounts,o=Tremolo", params: {target: people}}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: join}
spec:
  tasks:
    - {taskType: provision, sync: true, target: people, attributes: [uid, mail]}
---
${application('register', [
  registrationUrl(path, {
    workflowName: 'join',
    'uid.unique': 'true',
    'mail.unique': 'true',
    submitsPerMinute: '0',
    submitsPerValuePerHour: '0',
  }),
])}
`
