import { createRegistry } from '#kernel/registry.ts'
import file from '#modules/audit-sinks/file/file.ts'
import https from '#modules/audit-sinks/https/https.ts'
import syslog from '#modules/audit-sinks/syslog/syslog.ts'

/** Add an audit sink: one import above, one line below. */
export const auditSinks = createRegistry('audit sink', [file, https, syslog])
