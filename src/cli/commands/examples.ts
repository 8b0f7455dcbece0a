import process from 'node:process'
import { defineCommand, required, WrongUsage } from '#cli/command-line/command-line.ts'
import { configurationText } from '#cli/command-line/configuration-text.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { printText } from '#cli/command-line/output.ts'

export const examplesCommand = defineCommand({
  name: 'examples',
  about: 'Print commands that call a running gateway: the text examples.txt of its configuration folder.',
  usage: '--config DIR [options]',
  options: {
    config: { value: 'DIR', about: 'Configuration folder' },
    data: databaseOptions.data,
    ...outputOption,
    url: { value: 'URL', about: 'Address of the gateway (default $GATEHOUSE_URL, or http://127.0.0.1:8080)' },
  },
  examples: ['gatehouse examples --config examples/quickstart'],
  run: async (values, _, io) => {
    const config = required(values.config, 'config')
    const url = values.url ?? process.env['GATEHOUSE_URL'] ?? 'http://127.0.0.1:8080'
    if (!/^https?:\/\/[A-Za-z0-9.:[\]-]+$/.test(url)) {
      throw new WrongUsage('--url must be scheme, host and port, such as http://127.0.0.1:8080')
    }
    const text = configurationText(config, 'examples.txt', { config, data: values.data, url })
    if (text === undefined) throw new Error(`${config} has no examples.txt that can be read`)
    printText(text, io)
    io.result({ text })
  },
})
