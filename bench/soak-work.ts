import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { PlainBrowser } from '#testing/gateway/plain-browser.ts'
import { demoPasswords } from '#testing/stories/portal-story.ts'
import type { BenchCluster } from './sts-cluster.ts'

export interface SoakTarget {
  readonly url: string
  /** For the SCIM API. */
  readonly token: string
  readonly cluster: BenchCluster
}

interface Answer {
  readonly status: number
  readonly body: string
}

const scimPath = '/scim/people/Users'
const mostCreated = 500
const mostApprovals = 20
const mostFailures = 20
const pods = 200

/** How often each kind of work is done, of 100. Users are created and deleted equally often. */
const weights = {
  readUser: 36,
  listUsers: 4,
  createUser: 8,
  changeUser: 8,
  deleteUser: 8,
  exchangeToken: 20,
  readPortal: 10,
  requestAccess: 2,
  decide: 2,
  logIn: 2,
} as const
type Kind = keyof typeof weights
const kinds = Object.entries(weights).flatMap(([kind, weight]) => Array<Kind>(weight).fill(kind as Kind))

/** The mixed work of a soak. Answers other than the expected ones are failures. */
export class SoakWork {
  readonly failures: string[] = []
  failed = 0
  readonly #target: SoakTarget
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #tokens: readonly string[]
  /** Ids of users that this created, the oldest first. */
  readonly #created: string[] = []
  /** Cookies of the latest session. The one before stays until the next login, since requests under way use it. */
  readonly #sessions = { ada: [] as string[], grace: [] as string[] }
  #deciding = false
  #loggingIn = false
  #made = 0

  constructor(target: SoakTarget) {
    this.#target = target
    this.#tokens = Array.from({ length: pods }, () => target.cluster.token())
  }

  /** Before the first work. */
  async start(): Promise<void> {
    for (const login of ['ada', 'grace'] as const) await this.#logInAs(login)
    for (let i = 0; i < 50; i++) await this.#createUser()
  }

  /** One piece of work, and its milliseconds. Never rejects. */
  async once(): Promise<number> {
    const kind = kinds[Math.floor(Math.random() * kinds.length)] ?? 'readUser'
    const started = performance.now()
    try {
      await this.#do(kind)
    } catch (error) {
      this.failed++
      if (this.failures.length < mostFailures)
        this.failures.push(`${kind}: ${error instanceof Error ? error.message : error}`)
    }
    return performance.now() - started
  }

  close(): void {
    this.#agent.destroy()
  }

  async #do(kind: Kind): Promise<void> {
    const bearer = { authorization: `Bearer ${this.#target.token}` }
    switch (kind) {
      case 'readUser':
        await this.#call('GET', `${scimPath}/${this.#some()}`, bearer, undefined, [200])
        break
      case 'listUsers':
        await this.#call('GET', `${scimPath}?count=100`, bearer, undefined, [200])
        break
      case 'createUser':
        // A limit, since the kinds are chosen at random.
        if (this.#created.length < mostCreated) await this.#createUser()
        break
      case 'changeUser': {
        const value = `Changed ${this.#made++}`
        const body = {
          schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
          Operations: [{ op: 'replace', path: 'displayName', value }],
        }
        await this.#call('PATCH', `${scimPath}/${this.#some()}`, bearer, body, [200, 204])
        break
      }
      case 'deleteUser': {
        // Those at the front are not read any more.
        const id = this.#created.length > 40 ? this.#created.shift() : undefined
        if (id !== undefined) await this.#call('DELETE', `${scimPath}/${id}`, bearer, undefined, [204])
        break
      }
      case 'exchangeToken': {
        const form = new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: this.#tokens[Math.floor(Math.random() * pods)] ?? '',
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        })
        const type = { accept: 'application/jwt', 'content-type': 'application/x-www-form-urlencoded' }
        await this.#call('POST', '/sts/soak/token', type, form.toString(), [200])
        break
      }
      case 'readPortal':
        await this.#call('GET', '/main/urls', this.#cookie('ada'), undefined, [200])
        break
      case 'requestAccess': {
        const lines = [{ uuid: randomUUID(), name: 'vault-access', reason: 'soak' }]
        const { body } = await this.#call('PUT', '/main/workflows', this.#cookie('ada'), lines, [200])
        if (!body.includes('success')) throw new Error(body.slice(0, 300))
        break
      }
      case 'decide':
        // One at a time: two deciders would get each other's approvals.
        if (this.#deciding) return
        this.#deciding = true
        await this.#decide().finally(() => {
          this.#deciding = false
        })
        break
      case 'logIn':
        if (this.#loggingIn) return
        this.#loggingIn = true
        await this.#logInAs(this.#made++ % 2 === 0 ? 'ada' : 'grace').finally(() => {
          this.#loggingIn = false
        })
        break
    }
  }

  /** The newer half: the older ones are about to be deleted. */
  #some(): string {
    const half = Math.floor(this.#created.length / 2)
    return this.#created[half + Math.floor(Math.random() * (this.#created.length - half))] ?? ''
  }

  async #createUser(): Promise<void> {
    const login = `soak${this.#made++}-${randomUUID().slice(0, 8)}`
    const bearer = { authorization: `Bearer ${this.#target.token}` }
    const user = {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: login,
      displayName: login,
      name: { givenName: 'Soak', familyName: 'Person' },
      emails: [{ value: `${login}@example.com`, type: 'work', primary: true }],
      active: true,
    }
    const { body } = await this.#call('POST', scimPath, bearer, user, [201])
    this.#created.push((JSON.parse(body) as { id: string }).id)
  }

  async #decide(): Promise<void> {
    const grace = this.#cookie('grace')
    const { body } = await this.#call('GET', '/main/approvals', grace, undefined, [200])
    const { approvals } = JSON.parse(body) as { approvals: { approval: string }[] }
    const ids = approvals.slice(0, mostApprovals).map(({ approval }) => approval)
    if (ids.length === 0) return
    await this.#call('PUT', '/main/approvals', grace, { approved: true, reason: 'soak', approvals: ids }, [200])
  }

  async #logInAs(login: 'ada' | 'grace'): Promise<void> {
    const browser = new PlainBrowser(this.#target.url)
    const { status } = await browser.logIn('/main/user', login, demoPasswords[login])
    if (status !== 303) throw new Error(`login of ${login}: ${status}`)
    const sessions = this.#sessions[login]
    sessions.push([...browser.jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const old = sessions.length > 2 ? sessions.shift() : undefined
    if (old !== undefined) await this.#call('GET', '/main/logout', { cookie: old }, undefined, [204])
  }

  #cookie(login: 'ada' | 'grace'): Record<string, string> {
    return { cookie: this.#sessions[login].at(-1) ?? '', 'x-requested-with': 'soak', accept: 'application/json' }
  }

  async #call(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: unknown,
    expected: readonly number[],
  ): Promise<Answer> {
    const isForm = typeof body === 'string'
    const content = body === undefined ? undefined : isForm ? body : JSON.stringify(body)
    const json = path.startsWith('/scim') ? 'application/scim+json' : 'application/json'
    const type = content === undefined || isForm ? {} : { 'content-type': json }
    const length = content === undefined ? {} : { 'content-length': Buffer.byteLength(content) }
    const { status, body: answered } = await new Promise<Answer>((resolve, reject) => {
      const sent = request(new URL(path, this.#target.url), {
        method,
        agent: this.#agent,
        headers: { ...headers, ...type, ...length },
        timeout: 30_000,
      })
      sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')))
      sent.on('error', reject)
      sent.on('response', (response) => {
        text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject)
      })
      sent.end(content)
    })
    if (!expected.includes(status)) throw new Error(`${method} ${path}: ${status} ${answered.slice(0, 300)}`)
    return { status, body: answered }
  }
}
