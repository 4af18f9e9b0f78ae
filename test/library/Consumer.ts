/** Packs the built package and installs it into a project of its own, as a user has it; nothing is fetched. */
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { rolldown } from "rolldown"
import { library } from "../../rolldown.config.ts"
import { repository } from "../support/Command.ts"

/** A project that depends on the package. */
export interface Consumer {
  /** Root of the project; its sources are `src/*.ts`. */
  readonly root: string
  /** The installed package. */
  readonly installed: string
  readonly tarball: string
  /** Runs a program of the project with a home of its own. */
  readonly node: (args: ReadonlyArray<string>) => Promise<Ran>
  readonly dispose: () => void
}

/** What a program gave. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A tool of this repository, by its file in node_modules. */
export const tool = (file: string): string => path.join(repository, "node_modules", file)

/** Sources of the examples. */
export const examples = path.join(repository, "scratchpad", "examples")

const run = async (file: string, args: ReadonlyArray<string>, options: object): Promise<Ran> => {
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { encoding: "utf8", ...options })
    return { code: 0, stdout, stderr }
  } catch (error) {
    // execFile rejects with an Error that carries both streams and the code.
    const failed = error as Partial<Ran>
    return { code: failed.code ?? -1, stdout: failed.stdout ?? "", stderr: failed.stderr ?? String(error) }
  }
}

const must = async (file: string, args: ReadonlyArray<string>, options: object): Promise<Ran> => {
  const ran = await run(file, args, options)
  if (ran.code !== 0) throw new Error(`${file} ${args.join(" ")} failed:\n${ran.stdout}${ran.stderr}`)
  return ran
}

/** The package as `npm run build` makes it, in a directory of its own, so that nobody's `dist` is touched. */
const stage = async (directory: string): Promise<void> => {
  fs.mkdirSync(directory)
  for (const file of ["package.json", "README.md", "LICENSE"])
    fs.copyFileSync(path.join(repository, file), path.join(directory, file))
  const dist = path.join(directory, "dist")
  fs.cpSync(process.env["SIGIL_TEST_BUILD"] ?? "", dist, { recursive: true })
  const { output, ...input } = library(path.join(dist, "lib"))
  const bundle = await rolldown(input)
  await bundle.write(Array.isArray(output) ? output[0] : output)
  await bundle.close()
  await must(process.execPath, [path.join(repository, "scripts", "declarations.mjs"), path.join(dist, "lib")], {})
}

/** Makes the project, with the examples as its sources. */
export const makeConsumer = async (): Promise<Consumer> => {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "sigil-package-")))
  const home = path.join(base, "home")
  const root = path.join(base, "project")
  const modules = path.join(root, "node_modules")
  const installed = path.join(modules, "sigil")
  const env = { PATH: process.env["PATH"], HOME: home, npm_config_offline: "true", npm_config_update_notifier: "false" }
  for (const directory of [home, installed, path.join(modules, "@types")]) fs.mkdirSync(directory, { recursive: true })

  const staged = path.join(base, "package")
  await stage(staged)
  const { stdout } = await must("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", base], {
    cwd: staged,
    env
  })
  const [packed] = JSON.parse(stdout) as ReadonlyArray<{ readonly filename: string }>
  const tarball = path.join(base, packed?.filename ?? "")
  await must("tar", ["-xzf", tarball, "-C", installed, "--strip-components=1"], {})

  for (const name of ["effect", "@types/node"])
    fs.symlinkSync(path.join(repository, "node_modules", name), path.join(modules, name))
  fs.cpSync(examples, path.join(root, "src"), { recursive: true })
  fs.writeFileSync(path.join(root, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }))
  fs.writeFileSync(
    path.join(root, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "ES2022",
        module: "NodeNext",
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        // The package's own declarations are what is tested here.
        skipLibCheck: false,
        types: ["node"],
        rootDir: "src",
        outDir: "out"
      },
      include: ["src"]
    })
  )
  return {
    root,
    installed,
    tarball,
    node: (args) => run(process.execPath, args, { cwd: root, env: { PATH: env.PATH, HOME: home } }),
    dispose: () => fs.rmSync(base, { recursive: true, force: true })
  }
}
