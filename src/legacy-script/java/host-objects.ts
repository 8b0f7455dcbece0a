import type { LogLevel } from '#kernel/logger.ts'
import { JavaException } from './java-exception.ts'
import { javaEnum } from './java-lang.ts'
import { javaText, javaValue, optionalText } from './java-value.ts'

/** What the realm of a legacy script may call in its process. */
type BridgeRequest = 'http' | 'log' | 'audit' | 'random'

/** Only texts pass: no object of the process ever reaches a script. */
export type Bridge = (request: BridgeRequest, text: string) => string

let connected: Bridge | undefined

export function connectBridge(bridge: Bridge): void {
  connected = bridge
}

/** Errors of the other side are thrown as exceptions of this realm. */
export function askBridge(request: BridgeRequest, value: unknown): unknown {
  try {
    if (connected !== undefined) return JSON.parse(connected(request, JSON.stringify(value)))
  } catch {}
  throw new JavaException(`the ${request} of the gateway did not answer`)
}

export function writeLog(level: LogLevel, message: unknown, thrown?: unknown): void {
  const text = thrown === undefined || thrown === null ? '' : ` ${javaText(thrown)}`
  askBridge('log', { level, message: javaText(message) + text })
}

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

/** com.tremolosecurity.provisioning.core.Workflow. */
export class Workflow {
  readonly #id: string
  readonly #name: string

  constructor(id: string, name: string) {
    this.#id = id
    this.#name = name
  }

  getId(): string {
    return this.#id
  }

  getName(): string {
    return this.#name
  }
}

/** com.tremolosecurity.provisioning.core.ProvisioningEngine: only for reporting changes. */
export class ProvisioningEngine {
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
}

/** com.tremolosecurity.server.GlobalEntries. */
export class GlobalEntries {
  static getGlobalEntries(): GlobalEntries {
    return new GlobalEntries()
  }

  getConfigManager(): ConfigManager {
    return new ConfigManager()
  }
}

/** com.tremolosecurity.provisioning.core.WorkflowTask. */
export class WorkflowTask {
  getConfigManager(): ConfigManager {
    return new ConfigManager()
  }
}
