import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '#testing/gateway/command.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'

const workflow = (name: string, tasks: string): string => `
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: ${name} }
spec:
  tasks: |-
${tasks.trim().replace(/^/gm, '    ')}`

/** Adds workflows: one waits for an approval, one fails at its first attempt, one sets passwords. */
const more = `
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: story-api }
spec:
  isApp: true
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ["127.0.0.1"]
      uri: /story
      authChain: api
      azRules: [{ scope: filter, constraint: (role=workflow-caller) }]
      filterChain:
        - className: filters.CallWorkflow
          params:
            allowedWorkflow: [onboard, ask, stumble, welcome, gone]
            subject: any
            requireRequestorMatch: "false"
    - hosts: ["127.0.0.1"]
      uri: /as-specified
      authChain: api
      azRules: [{ scope: filter, constraint: (role=workflow-caller) }]
      filterChain:
        - className: filters.CallWorkflow
          params: { allowedWorkflow: [onboard, ask] }
---
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: vault }
spec:
  className: targets.Plugin
  params:
    - name: javaScript
      value: |-
        const users = new Map()
        function findUser(userID) { return users.get(userID) || null }
        function createUser(user) { users.set(user.userID, { userID: user.userID, attributes: {}, groups: [] }) }
        function syncUser() {}
        function deleteUser() {}
        function setUserPassword(user, request) { request.log(user.userID + ' has ' + user.password.length + ' characters') }
${workflow(
  'ask',
  `
- taskType: approval
  label: May $team$ have another member?
  emailTemplate: Please decide
  mailAttr: mail
  failureEmailSubject: No
  failureEmailMsg: It was not approved
  approvers: [{ scope: filter, constraint: (uid=boss) }]
  onSuccess:
    - taskType: provision
      sync: false
      target: people
      attributes: [uid]`,
)}
${workflow(
  'welcome',
  `
- taskType: provision
  sync: false
  setPassword: true
  target: vault
  attributes: []`,
)}
${workflow(
  'stumble',
  `
- taskType: customTask
  className: tasks.JavaScriptTask
  params:
    javaScript: |-
      function doTask(user) {
        state[user.userID] = (state[user.userID] || 0) + 1
        if (state[user.userID] === 1) throw new Error('not yet')
        return true
      }
- taskType: provision
  sync: false
  target: people
  attributes: [uid]`,
)}
`

export interface StoryGateway {
  readonly process: GatewayProcess
  /** For a caller with the role that calls need; `admin` has the role of administrators. */
  token(subject: string): Promise<string>
  /** `gatehouse` on the same database: exit code and output. */
  command(...args: string[]): Promise<{ readonly code: number; readonly output: string }>
  /** The options that point a command to the same database. */
  readonly place: readonly string[]
  /** SIGKILL, and a new process on the same data. */
  restartKilled(): Promise<void>
  close(): Promise<void>
}

/** The example of the call-workflow API, with more workflows, in its own process. */
export async function startCallWorkflow(
  databaseUrl: string | undefined,
  environment: Readonly<Record<string, string>> = {},
): Promise<StoryGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-call-'))
  const config = join(folder, 'config')
  cpSync('examples/call-workflow', config, { recursive: true })
  writeFileSync(join(config, 'story.yaml'), more)
  const dataFolder = join(folder, 'data')
  const place = ['--data', dataFolder, ...(databaseUrl === undefined ? [] : ['--database', databaseUrl])]
  const start = () =>
    startGatewayProcess({
      config,
      dataFolder,
      environment,
      // The runs of a killed process are claimed again when its lease expires.
      args: ['--workflow-lease-seconds', '5', ...(databaseUrl === undefined ? [] : ['--database', databaseUrl])],
    })
  let gateway = await start()
  return {
    get process() {
      return gateway
    },
    place,
    token: (subject) =>
      gateway.token(
        '--subject',
        subject,
        '--ttl',
        '60',
        '--claim',
        subject === 'admin' ? 'role=workflow-admin' : 'role=workflow-caller',
      ),
    command: async (...args) => {
      const { code, stdout, stderr } = await runCommand([...args, ...place])
      return { code, output: code === 0 ? stdout : stdout + stderr }
    },
    restartKilled: async () => {
      const { process: child } = gateway
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGKILL')
        await ended
      }
      gateway = await start()
    },
    close: async () => {
      await gateway.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
