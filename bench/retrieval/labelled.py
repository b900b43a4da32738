"""Passages, each with a question in its own words and one in others."""
# ruff: noqa: E501 - a passage is a line

from typing import NamedTuple


class Labelled(NamedTuple):
    """A passage and two questions that it answers."""

    passage: str
    literal: str
    paraphrased: str


ENGLISH = (
    Labelled(
        "The tenant shall pay the monthly rent in advance on or before the fifth day of each month by bank transfer.",
        "when is the monthly rent payable",
        "by what date do I have to send the landlord my money?",
    ),
    Labelled(
        "A security deposit equal to two months of rent is held by the landlord and returned within thirty days after the lease ends, less the cost of repairs.",
        "security deposit returned after lease ends",
        "how soon do I get my guarantee back when I move out?",
    ),
    Labelled(
        "Either party may terminate this lease early by giving sixty days of written notice; a fee of one month of rent applies.",
        "terminate the lease early written notice",
        "what does it cost to leave before the contract is over?",
    ),
    Labelled(
        "Pets are not allowed in the premises without the prior written consent of the landlord.",
        "are pets allowed in the premises",
        "can I keep a dog in the flat?",
    ),
    Labelled(
        "The landlord is responsible for repairs of the heating, the plumbing and the roof; the tenant replaces light bulbs and batteries.",
        "who is responsible for repairs of the heating and plumbing",
        "the radiator is cold, whose job is it to fix it?",
    ),
    Labelled(
        "Subletting the premises or any part of them is prohibited unless the landlord agrees in writing.",
        "subletting prohibited unless landlord agrees",
        "may I rent my room to somebody else during the summer?",
    ),
    Labelled(
        "Employees accrue 25 days of paid vacation a year; up to five unused days may be carried over until the end of March.",
        "how many unused vacation days may be carried over",
        "do my holidays expire at New Year?",
    ),
    Labelled(
        "An employee who is ill informs the manager before nine o'clock and hands in a medical certificate from the third day of absence.",
        "medical certificate third day of absence",
        "when do I need a note from the doctor?",
    ),
    Labelled(
        "Parental leave of up to fourteen weeks is granted at full pay to both parents after the birth or adoption of a child.",
        "parental leave weeks at full pay",
        "how long can a new father stay at home with his salary?",
    ),
    Labelled(
        "Expenses for business travel are reimbursed on presentation of receipts within two weeks of the trip; first class flights are not covered.",
        "business travel expenses reimbursed receipts",
        "will the company give me back what I spent on my train ticket?",
    ),
    Labelled(
        "Staff may work remotely for up to three days a week if their team lead agrees; core hours are from ten to four.",
        "work remotely days a week core hours",
        "how often am I allowed to do my job from home?",
    ),
    Labelled(
        "Harassment can be reported to the ombudsperson in confidence; retaliation against a person who reports is a ground for dismissal.",
        "report harassment to the ombudsperson",
        "to whom can I talk if a colleague bullies me?",
    ),
    Labelled(
        "Passwords must have at least fourteen characters and be stored in the password manager; they are never sent by e-mail.",
        "how many characters must passwords have",
        "what are the rules for my login secret?",
    ),
    Labelled(
        "Backups of the production database are made every six hours, encrypted, and kept for thirty-five days in a second region.",
        "production database backups kept for how many days",
        "how far back can we restore lost data?",
    ),
    Labelled(
        "When the service is down, the engineer on call opens an incident, posts on the status page within fifteen minutes and pages the incident commander.",
        "engineer on call opens an incident status page",
        "what must be done first in an outage?",
    ),
    Labelled(
        "Deployments to production happen from Monday to Thursday after two approvals; a release that raises the error rate above one percent is rolled back automatically.",
        "deployments to production approvals error rate rolled back",
        "can we ship a new version on a Friday?",
    ),
    Labelled(
        "Error E42 means that the filter is clogged: switch the machine off, take the filter out at the lower right, rinse it under running water and put it back.",
        "error E42 filter clogged",
        "the washer stopped and shows a fault about dirt, how do I clean it?",
    ),
    Labelled(
        "Descale the coffee machine every two months: fill the tank with descaler and water, press and hold the steam button for five seconds, and rinse twice.",
        "descale the coffee machine steam button",
        "how do I get rid of limestone in the espresso maker?",
    ),
    Labelled(
        "The warranty covers defects in material and workmanship for three years from the date of purchase; batteries and damage by water are excluded.",
        "warranty defects in material and workmanship years",
        "my device broke after twenty months, is it still free to repair?",
    ),
    Labelled(
        "To pair the headphones, hold the power button until the light blinks blue, then choose them in the Bluetooth settings of the phone.",
        "pair the headphones power button blinks blue",
        "how do I connect my earphones to a mobile wirelessly?",
    ),
    Labelled(
        "Orders can be returned free of charge within thirty days if the goods are unused and in their original packaging.",
        "orders returned within thirty days original packaging",
        "the shoes do not fit, can I send them back?",
    ),
    Labelled(
        "Standard delivery takes three to five working days; express delivery arrives the next day if the order is placed before noon.",
        "standard delivery working days express delivery",
        "how quickly will my parcel be here?",
    ),
    Labelled(
        "The aspirin must not be given to children under twelve, to people with stomach ulcers, or together with anticoagulants.",
        "aspirin children under twelve stomach ulcers",
        "is this painkiller safe for a toddler?",
    ),
    Labelled(
        "Bake the bread at 230 degrees for twenty minutes with steam, then at 200 degrees for another twenty-five until the crust is dark.",
        "bake the bread degrees minutes with steam",
        "how hot should the oven be for a loaf?",
    ),
)

CHINESE = (
    Labelled(
        "乙方应于每月五日前以银行转账方式向甲方支付当月租金。",
        "每月租金什么时候支付",
        "房租最晚哪天要交给房东？",
    ),
    Labelled(
        "押金为两个月租金，租赁期满后三十日内扣除维修费用后退还乙方。",
        "租赁期满押金退还",
        "搬走以后多久能拿回保证金？",
    ),
    Labelled(
        "任何一方提前解除合同的，应提前六十日书面通知对方，并支付一个月租金作为违约金。",
        "提前解除合同违约金",
        "租约没到期就想走，要赔多少钱？",
    ),
    Labelled(
        "未经甲方书面同意，乙方不得在房屋内饲养宠物。", "房屋内能否饲养宠物", "可以在租的房子里养猫吗？"
    ),
    Labelled(
        "房屋的供暖、管道和屋顶由甲方负责维修，灯泡和电池由乙方自行更换。",
        "供暖管道维修由谁负责",
        "暖气坏了该找谁修理？",
    ),
    Labelled(
        "未经出租人书面许可，承租人不得将房屋全部或部分转租给第三人。",
        "承租人转租第三人",
        "我暑假能把房间再租给别人吗？",
    ),
    Labelled(
        "员工每年享有二十五天带薪年假，未休年假最多可结转五天至次年三月底。",
        "未休年假结转几天",
        "今年没用完的假期明年还有效吗？",
    ),
    Labelled(
        "员工生病应在上午九点前通知主管，缺勤第三天起须提交医院证明。",
        "缺勤提交医院证明",
        "请病假从什么时候开始需要医生开的条子？",
    ),
    Labelled(
        "员工生育或收养子女后，父母双方均可享受最长十四周的全薪育儿假。",
        "全薪育儿假多少周",
        "孩子出生后爸爸能在家陪多久？",
    ),
    Labelled(
        "出差费用凭发票在行程结束后两周内报销，头等舱机票不予报销。",
        "出差费用凭发票报销",
        "坐高铁见客户花的钱公司给吗？",
    ),
    Labelled(
        "经组长同意，员工每周最多可以远程办公三天，核心工作时间为十点至十六点。",
        "每周远程办公几天",
        "一个星期能有几天在家上班？",
    ),
    Labelled(
        "骚扰行为可以向监察专员匿名举报，对举报人打击报复的将被解雇。",
        "向监察专员举报骚扰",
        "同事欺负我可以跟谁说？",
    ),
    Labelled(
        "密码长度不得少于十四个字符，必须保存在密码管理器中，严禁通过邮件发送。",
        "密码长度字符密码管理器",
        "登录口令有什么要求？",
    ),
    Labelled(
        "生产数据库每六小时备份一次，加密后在异地保存三十五天。",
        "生产数据库备份保存多少天",
        "数据丢了最早能恢复到什么时候？",
    ),
    Labelled(
        "服务中断时，值班工程师应立即创建故障单，并在十五分钟内更新状态页面。",
        "服务中断值班工程师故障单",
        "系统挂了第一步要做什么？",
    ),
    Labelled(
        "生产环境只在周一至周四发布，发布需两人批准，错误率超过百分之一时自动回滚。",
        "生产环境发布批准自动回滚",
        "星期五可以上线新版本吗？",
    ),
    Labelled(
        "故障代码E42表示过滤网堵塞，请关闭电源，取出右下方的过滤网，用清水冲洗后装回。",
        "故障代码E42过滤网堵塞",
        "洗衣机提示脏东西卡住了怎么清理？",
    ),
    Labelled(
        "咖啡机每两个月需要除垢一次：水箱加入除垢剂和水，长按蒸汽键五秒，然后冲洗两遍。",
        "咖啡机除垢蒸汽键",
        "怎么去掉机器里的水碱？",
    ),
    Labelled(
        "本产品自购买之日起保修三年，涵盖材料和工艺缺陷，电池和进水损坏除外。",
        "产品保修三年进水损坏",
        "用了一年半坏了还能免费修吗？",
    ),
    Labelled(
        "配对耳机时，请长按电源键直到指示灯闪烁蓝色，然后在手机蓝牙设置中选择该设备。",
        "耳机配对电源键指示灯",
        "无线耳塞怎么连到手机上？",
    ),
    Labelled(
        "商品未使用且包装完好的，可在收货后三十天内免费退货。", "商品免费退货包装完好", "鞋子买大了能不能退？"
    ),
    Labelled(
        "标准配送需要三到五个工作日，中午十二点前下单的加急订单次日送达。",
        "标准配送工作日加急订单",
        "快递几天能到？",
    ),
    Labelled(
        "阿司匹林不得用于十二岁以下儿童、胃溃疡患者，也不得与抗凝药同时服用。",
        "阿司匹林十二岁以下儿童",
        "这种止痛药小孩可以吃吗？",
    ),
    Labelled(
        "面包先以二百三十度加蒸汽烘烤二十分钟，再以二百度烘烤二十五分钟至表皮呈深色。",
        "面包蒸汽烘烤多少分钟",
        "烤吐司炉温要调到多高？",
    ),
)

UNANSWERABLE = (
    "who won the football world cup in 1998",
    "how tall is Mount Everest",
    "write a poem about autumn leaves",
    "what is the capital of Mongolia",
    "explain quantum entanglement",
    "今天天气怎么样？",
    "谁写了红楼梦？",
    "帮我写一首关于秋天的诗",
    "珠穆朗玛峰有多高？",
    "量子纠缠是什么意思？",
)
