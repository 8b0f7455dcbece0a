import { MyVDConnection } from './directory-search.ts'
import { decrypted, type EncryptedMessage, encrypted } from './encryption.ts'
import { HashMap } from './hash-map.ts'
import { askBridge, writeLog } from './host-bridge.ts'
import { User, userFrom } from './identity.ts'
import { IllegalStateException } from './java-exception.ts'
import { javaEnum } from './java-lang.ts'
import { javaText, javaValue, optionalText } from './java-value.ts'
import { ProvisioningTarget, TremoloType } from './targets.ts'
import { startWorkflow } from './workflow-call.ts'

/** org.apache.log4j.Logger. Everything goes to the log of the gateway, which filters by level. */
export class Logger {
  static getLogger(_name?: unknown): Logger {
    return new Logger()
  }

  trace(message: unknown, thrown?: unknown): void {
    writeLog('debug', message, thrown)
  }

  debug(message: unknown, thrown?: unknown): void {
    writeLog('debug', message, thrown)
  }

  info(message: unknown, thrown?: unknown): void {
    writeLog('info', message, thrown)
  }

  warn(message: unknown, thrown?: unknown): void {
    writeLog('warn', message, thrown)
  }

  error(message: unknown, thrown?: unknown): void {
    writeLog('error', message, thrown)
  }

  fatal(message: unknown, thrown?: unknown): void {
    writeLog('error', message, thrown)
  }

  isDebugEnabled(): boolean {
    return true
  }

  isInfoEnabled(): boolean {
    return true
  }
}

/** com.tremolosecurity.provisioning.core.ProvisioningUtil. */
export const ProvisioningUtil = {
  ActionType: javaEnum(['Add', 'Replace', 'Delete']),
}

/** The run that a call of the gateway belongs to. */
export interface RunFacts {
  readonly id: string
  readonly name: string
  readonly requester: string
  /** As plain data. */
  readonly user: Readonly<Record<string, unknown>>
}

let current: RunFacts | undefined

/** For the length of one call. */
export function setRun(run: RunFacts | undefined): void {
  current = run
}

/**
 * com.tremolosecurity.provisioning.core.Workflow: one that can be started, by its name; or the run of the current call,
 * whenever the script got the object. There is no run in `init`.
 */
export class Workflow {
  readonly #name: string | undefined

  constructor(name?: string) {
    this.#name = name
  }

  getId(): string {
    return this.#run().id
  }

  getName(): string {
    return this.#name ?? this.#run().name
  }

  /** Has the login of the requester, and no attributes. */
  getRequester(): User {
    return new User(this.#run().requester)
  }

  /** As the user was when the call began. */
  getUser(): User {
    return userFrom(this.#run().user)
  }

  executeWorkflow(call: unknown): void {
    if (this.#name === undefined) throw new IllegalStateException('this workflow runs already')
    startWorkflow(this.#name, call)
  }

  #run(): RunFacts {
    if (this.#name === undefined && current !== undefined) return current
    throw new IllegalStateException('no workflow runs during this call')
  }
}

/** com.tremolosecurity.provisioning.core.ProvisioningEngine. */
export class ProvisioningEngine {
  getTarget(name: unknown): ProvisioningTarget {
    return new ProvisioningTarget(javaText(name))
  }

  getWorkFlow(name: unknown): Workflow {
    return new Workflow(javaText(name))
  }

  /** Of a text. */
  encryptObject(text: unknown): EncryptedMessage {
    return encrypted(text)
  }

  decryptObject(message: unknown): string {
    return decrypted(message)
  }

  /** An audit entry of the running call. */
  logAction(
    _target: unknown,
    isEntry: unknown,
    action: unknown,
    _approval: unknown,
    _workflow: unknown,
    attribute: unknown,
    value?: unknown,
  ): void {
    const name = javaText(attribute)
    const subject = javaValue(isEntry) === true ? 'entry' : /^groups?$/i.test(name) ? 'group' : 'attribute'
    const text = optionalText(value)
    askBridge('audit', {
      subject,
      action: javaText(action).toLowerCase(),
      attribute: name,
      ...(text && { value: text }),
    })
  }
}

/** com.tremolosecurity.config.util.ConfigManager. */
export class ConfigManager {
  getProvisioningEngine(): ProvisioningEngine {
    return new ProvisioningEngine()
  }

  getMyVD(): MyVDConnection {
    return new MyVDConnection()
  }

  getCfg(): TremoloType {
    return new TremoloType()
  }

  /** For a connection manager, which ignores it. */
  getHttpClientSocketRegistry(): null {
    return null
  }
}

const entries = new HashMap()

/** com.tremolosecurity.server.GlobalEntries. */
export class GlobalEntries {
  static getGlobalEntries(): GlobalEntries {
    return new GlobalEntries()
  }

  getConfigManager(): ConfigManager {
    return new ConfigManager()
  }

  /** What this script has stored: the values of other scripts are out of reach. */
  get(name: unknown): unknown {
    return entries.get(javaText(name))
  }

  set(name: unknown, value: unknown): void {
    entries.put(javaText(name), value)
  }
}

/** com.tremolosecurity.provisioning.core.WorkflowTask. */
export class WorkflowTask {
  getWorkflow(): Workflow {
    return new Workflow()
  }

  getConfigManager(): ConfigManager {
    return new ConfigManager()
  }
}
