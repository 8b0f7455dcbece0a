import { askBridge } from './bridge.ts'
import { javaEnum } from './java-enum.ts'
import { javaText, javaValue, optionalText } from './java-value.ts'

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

/** com.tremolosecurity.provisioning.core.ProvisioningEngine: as far as a change can be told. */
export class ProvisioningEngine {
  /** An entry of the audit of the call that is going on. */
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
    const told = optionalText(value)
    askBridge('audit', {
      subject,
      action: javaText(action).toLowerCase(),
      attribute: name,
      ...(told && { value: told }),
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
