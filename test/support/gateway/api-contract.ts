import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { accountApi } from '#features/account/api/api-description.ts'
import { callWorkflowApi } from '#features/call-workflow/call-workflow.ts'
import { ownPasswordApi } from '#features/passwords/own-password.ts'
import { passwordResetApi } from '#features/passwords/reset-api.ts'
import { mainApi } from '#features/portal/main/api-description.ts'
import { operatorsApi } from '#features/portal/operators/operators.ts'
import { tokenApiDescription } from '#features/portal/token-page/token-api.ts'
import { registerApi } from '#features/registration/api-description.ts'
import { type ApiAnswer, type ApiOperation, DescribedApi } from '#sdk/api/api-description.ts'
import type { PreparedFilter } from '#sdk/filter/filter.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

/** The described APIs, by the prefix of their paths. */
export const describedApis = {
  '/register': registerApi,
  '/main': mainApi,
  '/token': tokenApiDescription,
  '/call-workflow': callWorkflowApi,
  '/account': accountApi,
  '/ops': operatorsApi,
  '/password': ownPasswordApi,
  '/reset': passwordResetApi,
} as const
export type ApiPrefix = keyof typeof describedApis

export interface ReceivedAnswer {
  readonly method: string
  /** With its query, as sent. */
  readonly path: string
  readonly status: number
  readonly type: string | null
  readonly text: string
}

/** Compares answers with the documents that an API publishes: both formats must describe the answer. */
export class ApiContract {
  /** The `operation status` pairs that were seen. */
  readonly seen = new Set<string>()
  readonly #prefix: string
  readonly #api: DescribedApi
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, formats: { 'date-time': true } })
  readonly #validators = new Map<string, ValidateFunction>()

  constructor(prefix: string, api: DescribedApi) {
    this.#prefix = prefix
    this.#api = api
    const place = { origin: 'http://x', base: '', prefix }
    this.#ajv.addSchema(this.#api.openApi(place), 'openapi')
    this.#ajv.addSchema(this.#api.swagger(place), 'swagger')
  }

  /** The differences from the description; empty if there are none. `mount` is the part before the prefix. */
  faults({ method, path, status, type, text }: ReceivedAnswer, mount = ''): string[] {
    const below = path.slice(mount.length + this.#prefix.length).split('?', 1)[0] ?? ''
    if (method === 'HEAD' || /^\/(?:swagger|openapi)\.json$/.test(below)) return []
    const operation = this.#operation(method, below)
    const { description } = this.#api
    const answer = operation?.answers[String(status)] ?? (status >= 400 ? description.failure : undefined)
    const at = `${method} ${path} ${status}`
    if (answer === undefined) return [`${at}: is not described`]
    if (operation !== undefined) this.seen.add(`${operation.id} ${status}`)
    return this.#bodyFaults(answer, type, text).map((fault) => `${at}: ${fault}`)
  }

  /** Successful operations that no test has seen, each as `id status`. */
  unseen(): string[] {
    const successes = this.#api.operations.flatMap(({ id, answers }) =>
      Object.keys(answers).flatMap((status) => (status.startsWith('2') ? [`${id} ${status}`] : [])),
    )
    return successes.filter((one) => !this.seen.has(one))
  }

  #operation(method: string, below: string): ApiOperation | undefined {
    const fits = ({ path }: ApiOperation): boolean =>
      new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`).test(below)
    return this.#api.operations.find((one) => one.method === method.toLowerCase() && fits(one))
  }

  #bodyFaults(answer: ApiAnswer, given: string | null, text: string) {
    const { schema, many = false, type = this.#api.description.type ?? 'application/json' } = answer
    const received = given?.split(';', 1)[0]
    if (schema === undefined) return type === 'application/json' && text !== '' ? ['a body is not described'] : []
    // A report may be a file, which is described by its parameter.
    if (received === 'text/csv' || received?.includes('spreadsheet') === true) return []
    if (received !== type) return [`is ${received}, and ${type} is described`]
    const body: unknown = JSON.parse(text)
    return ['openapi', 'swagger'].flatMap((format) => {
      const validate = this.#validator(format, schema, many)
      if (validate(body)) return []
      const problems = validate.errors?.map((one) => `${one.instancePath} ${one.message} ${JSON.stringify(one.params)}`)
      return [`${format} ${schema}: ${problems?.slice(0, 5).join('; ')}`]
    })
  }

  #validator(format: string, schema: string, many: boolean): ValidateFunction {
    const $ref = `${format}#/${format === 'openapi' ? 'components/schemas' : 'definitions'}/${schema}`
    const key = `${$ref} ${many}`
    const known = this.#validators.get(key)
    if (known !== undefined) return known
    const made = this.#ajv.compile(many ? { type: 'array', items: { $ref } } : { $ref })
    this.#validators.set(key, made)
    return made
  }
}

const contracts = new Map<ApiPrefix, ApiContract>()

/** The contract of the answers since the worker started; a file that asks for unseen ones begins with none seen. */
export function contractOf(prefix: ApiPrefix): ApiContract {
  const known = contracts.get(prefix) ?? new ApiContract(prefix, describedApis[prefix])
  contracts.set(prefix, known)
  return known
}

/** Throws if an answer of a described API does not match its documents. Ignores other paths. */
export function expectDescribed(answer: ReceivedAnswer, mounts: readonly string[] = ['', '/portal']): void {
  for (const prefix of Object.keys(describedApis) as ApiPrefix[]) {
    for (const mount of mounts) {
      const whole = `${mount}${prefix}`
      if (answer.path !== whole && !answer.path.startsWith(`${whole}/`) && !answer.path.startsWith(`${whole}?`))
        continue
      const faults = contractOf(prefix).faults(answer, mount)
      if (faults.length > 0) throw new Error(`an answer is not as the API's documents say: ${faults.join('\n')}`)
      return
    }
  }
}

/** Throws if the answer of a filter does not match the filter's own description. `path` is below its mount. */
export function expectDescribedBy(
  { api }: Pick<PreparedFilter, 'api'>,
  method: string,
  path: string,
  { status, headers, body }: GatewayResponse,
): void {
  if (!(api?.documents instanceof DescribedApi)) throw new Error('the filter has no description')
  const type = String(headers['content-type'] ?? '')
  const faults = new ApiContract('', api.documents).faults({ method, path, status, type, text: String(body ?? '') })
  if (faults.length > 0) throw new Error(`an answer is not as described: ${faults.join('\n')}`)
}
