import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import { exitOnSigterm } from '#testing/run/worker-end.ts'
import { ScimClient } from '#testing/scim/scim-client.ts'

/** Groups have a description here, which RFC 7643 does not give them. */
const configuration = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: {name: behind}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: {cookiesEnabled: false}
  urls:
    - hosts: ["127.0.0.1"]
      uri: /scim/behind
      authChain: api
      azRules: [{scope: dn, constraint: "sub=idp,ou=api,o=Tremolo"}]
      filterChain:
        - className: filters.ScimGateway
          params:
            mapping: scim
            journal: "0"
            lookupTarget: people
            workflowName: sync-behind
            deleteUserWorkflowName: delete-person
            groupWorkflow: change-membership
            groupCreateWorkflow: create-group
            groupUpdateWorkflow: update-group
            groupDeleteWorkflow: delete-group
            groupNestingWorkflow: nest-group
            groupSchema: |
              id: urn:ietf:params:scim:schemas:core:2.0:Group
              attributes: [{name: description, type: string}]
            userSchema: |
              id: urn:example:params:scim:schemas:Badge
              attributes:
                - {name: badge, type: integer}
                - {name: doors, type: string, multiValued: true}
                - {name: since, type: dateTime}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: sync-behind}
spec:
  description: Stores users, and sets the passwords of those who are sent with one.
  inList: false
  label: Store a user
  orgId: internal
  tasks: |-
    - taskType: provision
      sync: true
      target: people
      setPassword: true
`

export interface ScimBehind {
  readonly client: ScimClient
  /** Deletes all users and groups. */
  empty(): Promise<void>
}

let running: Promise<ScimBehind> | undefined

/** A gateway process that simulates another SCIM server, without users. The files of this worker share it. */
export async function scimBehind(): Promise<ScimBehind> {
  running ??= startScimBehind()
  const behind = await running
  await behind.empty()
  return behind
}

async function startScimBehind(): Promise<ScimBehind> {
  const config = mkdtempSync(join(tmpdir(), 'gatehouse-behind-'))
  for (const file of ['authentication.yaml', 'people.yaml', 'values.yaml']) {
    cpSync(join('examples/scim', file), join(config, file))
  }
  writeFileSync(join(config, 'behind.yaml'), configuration)
  const gateway = await startGatewayProcess({ config })
  exitOnSigterm()
  process.once('exit', () => {
    gateway.process.kill('SIGKILL')
    for (const folder of [config, gateway.dataFolder]) rmSync(folder, { recursive: true, force: true })
  })
  const client = new ScimClient(`${gateway.url}/scim/behind`, await gateway.token('--subject', 'idp'))
  return {
    client,
    async empty() {
      for (const collection of ['/Users', '/Groups']) await deleteAll(client, collection)
    },
  }
}

async function deleteAll(client: ScimClient, collection: string): Promise<void> {
  for (;;) {
    const { body } = await client.list(collection, { count: '200', attributes: 'id' })
    const found = (body.Resources ?? []) as readonly { readonly id: string }[]
    if (found.length === 0) return
    await client.post('/Bulk', {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: found.map(({ id }) => ({ method: 'DELETE', path: `${collection}/${encodeURIComponent(id)}` })),
    })
  }
}
